"""A pipeline schedule does every piece of work once, and as early as it can."""

from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from d2l_ext.pipeline.schedule import (
    Slot,
    Work,
    bubble,
    bubble_formula,
    clock,
    drawing,
    gpipe,
    one_f_one_b,
    peak_held,
)

SCHEDULES = [gpipe, one_f_one_b]
every_schedule = pytest.mark.parametrize("make", SCHEDULES)
sizes = given(p=st.integers(1, 8), m=st.integers(1, 16), backward=st.integers(1, 3))


def rows(text):
    return [line.split() for line in text.strip().splitlines()]


def test_gpipe_goes_forward_with_all_before_it_goes_backward():
    assert rows(drawing(clock(gpipe(3, 4)))) == rows("""
        stage 0  F0 F1 F2 F3 .  .  .  .  B3 B2 B1 B0
        stage 1  .  F0 F1 F2 F3 .  .  B3 B2 B1 B0 .
        stage 2  .  .  F0 F1 F2 F3 B3 B2 B1 B0 .  .
    """)


def test_one_f_one_b_goes_backward_as_soon_as_it_can():
    assert rows(drawing(clock(one_f_one_b(3, 4)))) == rows("""
        stage 0  F0 F1 F2 .  .  B0 F3 B1 .  B2 .  B3
        stage 1  .  F0 F1 .  B0 F2 B1 F3 B2 .  B3 .
        stage 2  .  .  F0 B0 F1 B1 F2 B2 F3 B3 .  .
    """)


@every_schedule
def test_the_drawing_in_the_docstring_is_the_schedule(make):
    drawn = [line for line in make.__doc__.splitlines() if line.strip()[:6] == "stage "]
    assert rows("\n".join(drawn)) == rows(drawing(clock(make(3, 4))))


def test_longer_backward_work_fills_more_slots():
    assert rows(drawing(clock(gpipe(2, 2), backward=2))) == rows("""
        stage 0  F0 F1 .  .  .  B1 B1 B0 B0
        stage 1  .  F0 F1 B1 B1 B0 B0 .  .
    """)
    assert rows(drawing(clock(one_f_one_b(1, 2), forward=2))) == [
        ["stage", "0", "F0", "F0", "B0", "F1", "F1", "B1"]
    ]


def test_columns_stay_aligned_with_ten_micro_batches_and_more():
    lines = drawing(clock(one_f_one_b(3, 12))).splitlines()
    starts = [lines[0].index("F11"), lines[1].index("F0"), lines[2].index("B9")]
    assert len({start % 4 for start in starts}) == 1


@every_schedule
@sizes
def test_every_stage_goes_forward_and_backward_once_with_each_micro_batch(
    make, p, m, backward
):
    schedule = make(p, m)
    assert len(schedule) == p
    for order in schedule:
        assert sorted(order) == sorted(
            Work(kind, i) for kind in ("forward", "backward") for i in range(m)
        )


@every_schedule
@sizes
def test_no_work_starts_before_what_it_needs_has_ended(make, p, m, backward):
    slots = clock(make(p, m), backward=backward)
    at = {(x.stage, x.kind, x.chunk): x for x in slots}
    for s, kind, i, start, _ in slots:
        if kind == "forward" and s > 0:
            assert at[s - 1, "forward", i].end <= start
        if kind == "backward":
            assert at[s, "forward", i].end <= start
        if kind == "backward" and s < p - 1:
            assert at[s + 1, "backward", i].end <= start


@every_schedule
@sizes
def test_a_stage_does_one_thing_at_a_time_and_in_its_order(make, p, m, backward):
    schedule = make(p, m)
    slots = clock(schedule, backward=backward)
    for s, order in enumerate(schedule):
        lane = [x for x in slots if x.stage == s]
        assert [Work(x.kind, x.chunk) for x in lane] == order
        assert all(x.end <= y.start for x, y in zip(lane, lane[1:]))


@every_schedule
@sizes
def test_the_clock_lists_work_behind_all_that_it_needs(make, p, m, backward):
    done = set()
    for s, kind, i, *_ in clock(make(p, m), backward=backward):
        needs = {(s, "forward", i)} if kind == "backward" else set()
        neighbour = s - 1 if kind == "forward" else s + 1
        if 0 <= neighbour < p:
            needs.add((neighbour, kind, i))
        assert needs <= done
        done.add((s, kind, i))


@every_schedule
@sizes
def test_the_bubble_of_the_drawing_is_the_formula(make, p, m, backward):
    slots = clock(make(p, m), backward=backward)
    span = max(x.end for x in slots)
    assert span == (m + p - 1) * (1 + backward)
    idle = span * p - sum(x.end - x.start for x in slots)
    assert Fraction(idle, span * p) == Fraction(p - 1, m + p - 1)
    assert bubble(slots) == pytest.approx(bubble_formula(p, m), abs=1e-12)


def test_the_bubble_shrinks_with_more_micro_batches_and_is_none_on_one_stage():
    assert [round(bubble_formula(4, m), 3) for m in (1, 4, 8, 32)] == [
        0.75, 0.429, 0.273, 0.086,
    ]  # fmt: skip
    assert bubble_formula(1, 5) == bubble(clock(gpipe(1, 5))) == 0


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
    schedule[0].remove(Work("forward", 1))
    with pytest.raises(ValueError, match="stage 1 waits to go forward with micro-bat"):
        clock(schedule)


@every_schedule
@pytest.mark.parametrize("p, m, message", [
    (0, 4, "stages must be a whole number from 1, not 0"),
    (2, 0, "micro-batches must be a whole number from 1, not 0"),
    (2, 2.5, "micro-batches must be a whole number from 1, not 2.5"),
])  # fmt: skip
def test_counts_that_are_none_are_refused(make, p, m, message):
    for function in (make, bubble_formula):
        with pytest.raises(ValueError, match=message):
            function(p, m)

