"""Devices are chosen in one place, and it says which it chose."""

import d2l_ext  # noqa: F401, I001
import mxnet as mx
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sanitizer import sanitize

from d2l_ext import devices
from d2l_ext.devices import gpus
from d2l_ext.devices.choice import FORCED, choose_kind


@pytest.fixture(autouse=True)
def no_forced_choice(monkeypatch):
    monkeypatch.delenv(devices.VARIABLE, raising=False)
    monkeypatch.setattr(gpus, "reasons", list)  # whatever this machine has


def with_gpus(monkeypatch, count):
    monkeypatch.setattr(mx.context, "num_gpus", lambda: count)


def test_one_gpu_where_two_are_needed_says_why_cpu_contexts(monkeypatch):
    with_gpus(monkeypatch, 1)
    assert devices.describe(devices.try_all_devices(2)) == (
        "2 devices: cpu(0), cpu(1) (profile: 1 GPU found, 2 needed, so CPU contexts)"
    )


def test_what_forced_the_choice_is_named(monkeypatch):
    with_gpus(monkeypatch, 1)
    why = "but 2 GPUs are needed and MXNet sees 1"
    with pytest.raises(RuntimeError, match=f"^force='gpu', {why}"):
        devices.try_all_devices(2, force="gpu")
    monkeypatch.setenv(devices.VARIABLE, "gpu")
    with pytest.raises(RuntimeError, match=f"^D2L_EXT_DEVICES='gpu', {why}"):
        devices.try_all_devices(2)
    monkeypatch.setenv(devices.VARIABLE, "gpus")
    with pytest.raises(ValueError, match="^D2L_EXT_DEVICES='gpus': write cpu, one-gpu"):
        devices.try_all_devices(2)


@pytest.mark.parametrize("k", [0, -1, 1.5, "2"])
def test_a_number_of_devices_below_one_is_refused(k):
    with pytest.raises(ValueError, match="whole number of at least 1"):
        devices.try_all_devices(k)


def test_a_device_is_parsed_from_its_name():
    assert devices.parse_device("cpu") == mx.cpu(0)
    assert devices.parse_device("cpu:3") == mx.cpu(3)


@pytest.mark.parametrize("text", ["tpu:0", "cpu:x", "cpu:-1", "", "cpu:", "gpu:"])
def test_an_unknown_device_is_refused_by_name(text, monkeypatch):
    with_gpus(monkeypatch, 0)
    with pytest.raises(ValueError, match="device|no gpu"):
        devices.parse_device(text)


def test_a_gpu_that_is_not_there_is_refused(monkeypatch):
    with_gpus(monkeypatch, 1)
    with pytest.raises(ValueError, match="no gpu:1: MXNet sees 1 GPU"):
        devices.parse_device("gpu:1")


def test_as_with_one_gpu_a_chapter_that_needs_two_takes_cpu_contexts(monkeypatch):
    with_gpus(monkeypatch, 4)
    monkeypatch.setenv(devices.VARIABLE, "one-gpu")
    assert devices.try_all_devices(1) == [mx.gpu(0)]
    assert devices.try_all_devices(2) == [mx.cpu(0), mx.cpu(1)]
    assert "4 GPUs found, D2L_EXT_DEVICES=one-gpu" in devices.describe([mx.cpu(0)])


def test_an_argument_goes_before_the_variable(monkeypatch):
    with_gpus(monkeypatch, 4)
    monkeypatch.setenv(devices.VARIABLE, "gpu")
    assert devices.try_all_devices(2, force="cpu") == [mx.cpu(0), mx.cpu(1)]
    assert devices.try_all_devices(2) == [mx.gpu(0), mx.gpu(1)]


def test_a_gpu_that_cannot_be_used_is_named_wherever_devices_are(monkeypatch):
    with_gpus(monkeypatch, 0)
    monkeypatch.setattr(gpus, "reasons", lambda: ["NVIDIA H200: capability 9.0"])
    chosen = devices.try_all_devices(2)
    assert chosen == [mx.cpu(0), mx.cpu(1)]
    assert "found [NVIDIA H200: capability 9.0], 2 needed" in devices.describe(chosen)
    with pytest.raises(ValueError, match="NVIDIA H200: capability 9.0. Choose"):
        devices.parse_device("gpu:0")


# ---- For every number of GPUs, need and forced choice ----

found = st.integers(0, 16)
needed = st.integers(1, 16)
forced = st.sampled_from(("", *FORCED))


def is_refused(found, needed, forced):
    """Whether GPUs are demanded that are not there."""
    return found < {"gpu": needed, "one-gpu": 1}.get(forced, 0)


@given(found, needed, forced)
def test_gpus_are_chosen_exactly_when_they_suffice_and_may_be_used(
    found, needed, forced
):
    if is_refused(found, needed, forced):
        with pytest.raises(RuntimeError, match=f"MXNet sees {found}"):
            choose_kind(found, needed, forced)
        return
    counted = min(found, {"cpu": 0, "one-gpu": 1}.get(forced, found))
    assert choose_kind(found, needed, forced) == ("gpu" if needed <= counted else "cpu")


@pytest.mark.parametrize("k", range(1, 5))
def test_what_is_printed_is_the_same_in_every_profile(k, monkeypatch):
    """Once nbval's sanitizer went over it: a chapter's outputs are right everywhere."""
    printed = set()
    for found in range(5):
        with_gpus(monkeypatch, found)
        for word in ("", *FORCED):
            if is_refused(found, k, word):
                continue
            monkeypatch.setenv(devices.VARIABLE, word)
            chosen = devices.try_all_devices(k)
            assert [d.device_id for d in chosen] == list(range(k))
            assert len({d.device_type for d in chosen}) == 1
            printed.add(sanitize(f"{devices.describe(chosen)} {chosen} {chosen[0]}"))
    with_gpus(monkeypatch, 0)
    reason = "NVIDIA H200: its compute capability is 9.0"
    monkeypatch.setattr(gpus, "reasons", lambda: [reason])
    monkeypatch.delenv(devices.VARIABLE)
    chosen = devices.try_all_devices(k)
    printed.add(sanitize(f"{devices.describe(chosen)} {chosen} {chosen[0]}"))
    assert len(printed) == 1
