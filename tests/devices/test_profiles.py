"""GPUs or CPU contexts: right for every number of GPUs, need and forced choice.

What is printed of a choice is the same in every profile, once nbval's sanitizer went
over it, so that a chapter's stored outputs are right on every machine.
"""

import d2l_ext  # noqa: F401, I001
import mxnet as mx
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sanitizer import sanitize

from d2l_ext import devices
from d2l_ext.devices import gpus as usable
from d2l_ext.devices.profiles import FORCED, PROFILES, VARIABLE, choose

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
            choose(found, needed, forced)
        return
    allowed = {"cpu": 0, "one-gpu": 1}.get(forced, found)
    expected = "gpu" if needed <= min(found, allowed) else "cpu"
    assert choose(found, needed, forced).kind == expected


@given(found, needed, st.sampled_from(("", "cpu")))
def test_without_a_demand_for_gpus_nothing_is_refused(found, needed, forced):
    choose(found, needed, forced)


@given(found, needed)
def test_another_gpu_never_takes_gpus_away(found, needed):
    if choose(found, needed).kind == "gpu":
        assert choose(found + 1, needed).kind == "gpu"


@given(found, needed)
def test_needing_fewer_devices_never_takes_gpus_away(found, needed):
    if choose(found, needed + 1).kind == "gpu":
        assert choose(found, needed).kind == "gpu"


@given(st.integers(1, 16), needed)
def test_forcing_one_gpu_chooses_as_a_machine_with_one(found, needed):
    assert choose(found, needed, "one-gpu") == choose(1, needed)


@given(found, needed)
def test_forcing_the_cpu_chooses_as_a_machine_without_gpus(found, needed):
    assert choose(found, needed, "cpu") == choose(0, needed)


@given(found, needed)
def test_the_profile_is_the_machines_and_not_the_needs(found, needed):
    assert choose(found, needed).profile == PROFILES[min(found, 2)]


@given(st.text().filter(lambda word: word not in ("", *FORCED)))
def test_an_unknown_word_is_refused_with_those_that_there_are(word):
    with pytest.raises(ValueError, match="write cpu, one-gpu, gpu, or unset it"):
        choose(2, 2, word)


@pytest.fixture
def gpus(monkeypatch):
    """A function that sets how many GPUs MXNet sees."""
    monkeypatch.delenv(VARIABLE, raising=False)
    monkeypatch.setattr(usable, "reasons", list)
    return lambda n: monkeypatch.setattr(mx.context, "num_gpus", lambda: n)


@pytest.mark.parametrize("k", range(1, 5))
def test_what_is_printed_of_devices_is_the_same_in_every_profile(gpus, k, monkeypatch):
    printed = set()
    for found in range(5):
        gpus(found)
        for word in ("", *FORCED):
            if is_refused(found, k, word):
                continue
            monkeypatch.setenv(VARIABLE, word)
            chosen = devices.try_all_devices(k)
            assert [d.device_id for d in chosen] == list(range(k))
            assert len({d.device_type for d in chosen}) == 1
            printed.add(sanitize(f"{devices.describe(chosen)} {chosen} {chosen[0]}"))
    gpus(0)
    reason = "NVIDIA H200: its compute capability is 9.0"
    monkeypatch.setattr(usable, "reasons", lambda: [reason])
    monkeypatch.delenv(VARIABLE)
    chosen = devices.try_all_devices(k)
    printed.add(sanitize(f"{devices.describe(chosen)} {chosen} {chosen[0]}"))
    assert len(printed) == 1
