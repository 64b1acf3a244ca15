"""Devices that MXNet's profiler can record, on a machine with few cores, too."""

from d2l_ext.devices import try_all_devices
from d2l_ext.devices.timeline import last_cpu


def devices_to_record(k):
    """Return `k` devices; two where the profiler has no room for more than three.

    It has one slot per core and two more, so a machine with one core records three CPU
    contexts.
    """
    return try_all_devices(k if k <= last_cpu() + 1 else 2)
