"""The storage profiler's counters give the bytes that each device's arrays take."""

import d2l_ext  # noqa: F401, I001
import json
from types import SimpleNamespace

import pytest
from mxnet import cpu, np, npx
from recorded_devices import devices_to_record

from d2l_ext.devices import storage, timeline
from d2l_ext.devices import try_all_devices
from d2l_ext.devices.timeline import last_cpu

npx.set_np()


def name(device):
    return f"{device.device_type}/{device.device_id}"


@pytest.mark.parametrize("k", [1, 2, 4])
def test_each_device_holds_the_bytes_of_its_arrays(k):
    devices = devices_to_record(k)
    with storage.record(devices) as memory:
        arrays = [np.ones((1000, i + 1), ctx=d) for i, d in enumerate(devices)]
    assert memory.held == {name(x.ctx): x.size * 4 for x in arrays}
    assert memory.peak == memory.held


def test_what_is_dropped_counts_for_the_peak_only():
    device = try_all_devices(1)[0]
    with storage.record([device]) as memory:
        x = np.ones(3000, ctx=device)
        x.wait_to_read()
        del x
        npx.waitall()
        y = np.ones(1000, ctx=device)
    assert memory.peak == {name(device): 12000}
    assert memory.held == {name(device): y.size * 4}


def test_records_in_a_row_start_from_nothing():
    device = try_all_devices(1)[0]
    for size in (5000, 10, 700):
        with storage.record([device]) as memory:
            x = np.ones(size, ctx=device)
            x.wait_to_read()
        del x  # outside, where the profiler does not see it
        assert memory.peak == memory.held == {name(device): size * 4}


def test_a_device_without_arrays_holds_nothing():
    devices = try_all_devices(2)
    with storage.record(devices) as memory:
        pass
    assert memory.held == memory.peak == {name(d): 0 for d in devices}


def test_a_timeline_before_and_after_holds_operators_only():
    device = try_all_devices(1)[0]
    for _ in range(2):
        with timeline.record() as trace:
            np.ones(10, ctx=device)
        assert [e.name for e in trace.events] == ["_npi_ones"]
        with storage.record([device]) as memory:
            x = np.ones(10, ctx=device)
        assert memory.held == {name(device): x.size * 4}
        del x


@pytest.mark.parametrize("cuda, first, second", [
    (False, "cpu pinned/", "cpu shared/"), (True, "gpu/0", "gpu/1"),
])
def test_contexts_beyond_the_cores_borrow_the_slots_after_them_in_either_build(
    cuda, first, second, tmp_path, monkeypatch
):
    build = SimpleNamespace(is_enabled=lambda name: cuda and name == "CUDA")
    monkeypatch.setattr(storage, "Features", lambda: build)
    lent = [cpu(last_cpu() - 1), cpu(last_cpu())]
    counts = [{"ph": "C", "ts": ts, "args": {f"Memory: {slot}": value}}
              for slot, held in ((first, 700), (second, 60))
              for ts, value in enumerate((4, 1004, 4 + held, 8 + held))]
    dump = tmp_path / "dump"
    dump.write_text(json.dumps({"traceEvents": counts})[:-2])
    peak, held, _ = storage._read(dump, storage._slots(lent))
    assert peak == {name(device): 1000 for device in lent}
    assert held == {name(lent[0]): 700, name(lent[1]): 60}


def test_a_context_without_a_slot_is_refused():
    beyond = cpu(last_cpu() + 1)
    refused = pytest.raises(timeline.TooFewCores, match="cannot be recorded")
    with refused, storage.record([beyond]):
        pass
