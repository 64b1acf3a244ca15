"""A pipeline schedule does every piece of work once, and as early as it can."""

from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from d2l_ext.pipeline.schedule import (
    Op,
    Slot,
    bubble,
    bubble_formula,
    clock,
    gpipe,
    interleaved,
    one_f_one_b,
    op_clock,
    peak_held,
    zero_bubble,
)

SCHEDULES = [gpipe, one_f_one_b]
every_schedule = pytest.mark.parametrize("make", SCHEDULES)
sizes = given(p=st.integers(1, 8), m=st.integers(1, 16), backward=st.integers(1, 3))


@every_schedule
def test_the_drawing_in_the_docstring_is_the_schedule(make):
    slots = clock(make(3, 4))
    rows = [["."] * 12 for _ in range(3)]
    for stage, kind, chunk, start, _ in slots:
        rows[stage][start] = f"{kind[0].upper()}{chunk}"
    drawn = [line.split() for line in make.__doc__.splitlines()]
    assert [x[2:] for x in drawn if x[:1] == ["stage"]] == rows


def test_longer_work_fills_more_slots():
    slots = clock(gpipe(2, 2), forward=[1, 2], backward=[3, 4], message=5)
    assert [(x.stage, x.start, x.end) for x in slots] == [
        (0, 0, 1), (0, 1, 2), (1, 6, 8), (1, 8, 10), (1, 10, 14), (1, 14, 18),
        (0, 19, 22), (0, 23, 26),
    ]  # fmt: skip


def test_the_clock_takes_schedules_of_several_stages_a_device_and_parts_of_backward():
    for orders in (interleaved(2, 4, 2), zero_bubble(3, 4, 2)):
        times = op_clock(orders)
        assert clock(orders, backward=2) == [
            (*op, start, end) for op, (_, start, end) in times.items()
        ]


@every_schedule
@sizes
def test_every_stage_goes_forward_and_backward_once_with_each_micro_batch(
    make, p, m, backward
):
    schedule = make(p, m)
    assert len(schedule) == p
    for s, order in enumerate(schedule):
        assert sorted(order) == sorted(
            Op(s, kind, i) for kind in ("forward", "backward") for i in range(m)
        )


@every_schedule
@sizes
def test_no_work_is_listed_or_starts_before_what_it_needs_has_ended(
    make, p, m, backward
):
    ended = {}
    for s, kind, i, start, end in clock(make(p, m), backward=backward):
        needs = [(s, "forward", i)] if kind == "backward" else []
        neighbour = s - 1 if kind == "forward" else s + 1
        if 0 <= neighbour < p:
            needs.append((neighbour, kind, i))
        assert all(ended[work] <= start for work in needs)
        ended[s, kind, i] = end


@every_schedule
@sizes
def test_a_stage_does_one_thing_at_a_time_and_in_its_order(make, p, m, backward):
    schedule = make(p, m)
    slots = clock(schedule, backward=backward)
    for s, order in enumerate(schedule):
        lane = [x for x in slots if x.stage == s]
        assert [Op(s, x.kind, x.chunk) for x in lane] == order
        assert all(x.end <= y.start for x, y in zip(lane, lane[1:]))


@every_schedule
@sizes
def test_the_bubble_of_the_drawing_is_the_formula(make, p, m, backward):
    slots = clock(make(p, m), backward=backward)
    span = max(x.end for x in slots)
    assert span == (m + p - 1) * (1 + backward)
    idle = span * p - sum(x.end - x.start for x in slots)
    assert Fraction(idle, span * p) == Fraction(p - 1, m + p - 1)
    assert bubble(slots) == pytest.approx(bubble_formula(p, m), abs=1e-12)


def test_the_bubble_counts_the_wait_of_every_stage():
    slots = [Slot(0, "forward", 0, 0, 1), Slot(1, "forward", 0, 1, 4)]
    assert bubble(slots) == 1 - 4 / 8


@sizes
def test_gpipe_holds_all_micro_batches_and_one_f_one_b_no_more_than_stages_behind(
    p, m, backward
):
    assert peak_held(gpipe(p, m)) == [m] * p
    assert peak_held(one_f_one_b(p, m)) == [min(p - s, m) for s in range(p)]


def test_a_schedule_that_gets_stuck_is_refused_with_what_waits():
    stuck = one_f_one_b(2, 2)
    stuck[0] = [stuck[0][2], *stuck[0][:2], stuck[0][3]]  # backward before forward
    message = (
        "stuck: stage 0 waits to go backward with micro-batch 0; "
        "stage 1 waits to go forward with micro-batch 0"
    )
    with pytest.raises(ValueError, match=message):
        clock(stuck)


def test_a_stage_that_leaves_out_a_micro_batch_is_noticed_by_its_neighbour():
    schedule = gpipe(2, 2)
    schedule[0].remove(Op(0, "forward", 1))
    with pytest.raises(ValueError, match="stage 1 waits to go forward with micro-bat"):
        clock(schedule)


@every_schedule
@pytest.mark.parametrize("p, m, message", [
    (0, 4, "stages must be a whole number from 1, not 0"),
    (2, 0, "chunks must be a whole number from 1, not 0"),
    (2, 2.5, "chunks must be a whole number from 1, not 2.5"),
])  # fmt: skip
def test_counts_that_are_none_are_refused(make, p, m, message):
    for function in (make, bubble_formula):
        with pytest.raises(ValueError, match=message):
            function(p, m)

