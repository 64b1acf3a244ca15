"""What workers must have in common, and how they tell each other."""

import d2l_ext  # noqa: F401, I001
import pytest
from hypothesis import given
from hypothesis import strategies as st

import pslaunch as launch
from d2l_ext.clusters import agreement


@pytest.mark.parametrize("kind", ["dist_sync", "dist_async"])
def test_each_worker_learns_what_all_have_said(kind):
    told = launch.call(tells, num_workers=3, num_servers=2, kv_type=kind)
    assert told == [[f"ä worker {rank}" * (1 + 9 * rank) for rank in range(3)]] * 3


def tells(kv):
    from d2l_ext.clusters.agreement import exchange

    return exchange(kv, f"ä worker {kv.rank}" * (1 + 9 * kv.rank))


def test_a_text_that_is_too_long_is_refused():
    with pytest.raises(ValueError, match="4097 bytes: give at most 4096"):
        agreement.exchange(None, "x" * 4097)


STEPS_OF = st.dictionaries(st.sampled_from("369"), st.sampled_from("ab"))


@given(st.lists(STEPS_OF, min_size=1, max_size=4))
def test_the_steps_agreed_on_are_whole_and_the_same_everywhere(workers):
    names = [f"w{i}" for i in range(len(workers))]
    same = [step for step in "369" if all(
        step in own and own[step] == workers[0][step] for own in workers)]
    if same or not any(workers):
        assert agreement.common_steps(names, workers) == [int(step) for step in same]
    else:
        with pytest.raises(ValueError, match="no whole checkpoint in common"):
            agreement.common_steps(names, workers)


def test_what_is_missing_on_a_worker_differs_too():
    lines = agreement.differences(["w0", "w1"], [{"a": 1, "b": 2}, {"a": 1}])
    assert lines == ["b is 2 on w0, None on w1"]


def test_variables_that_are_empty_have_their_default():
    assert agreement.wire({"PS_RESEND": ""}) == agreement.wire({})
    assert agreement.wire({"PS_RESEND": "1"})["PS_RESEND"] == "1"
