"""Devices and time."""

from .. import lazy

__getattr__ = lazy.names(
    __name__,
    choice="VARIABLE describe parse_device profile try_all_devices try_device",
)
