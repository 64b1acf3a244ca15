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
    waiting,
    zero_bubble,
)

every_schedule = pytest.mark.parametrize("make", [gpipe, one_f_one_b])
sizes = given(p=st.integers(1, 8), m=st.integers(1, 16), backward=st.integers(1, 3))
SIZES = [(p, m) for p in range(1, 9) for m in range(1, 17)]
GROUPS = [(p, m, v) for p, m in SIZES if m % p == 0 for v in (1, 2, 4)]


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
    ]


def test_the_clock_takes_schedules_of_several_stages_a_device_and_parts_of_backward():
    for orders in (interleaved(2, 4, 2), zero_bubble(3, 4, 2)):
        times = op_clock(orders)
        assert clock(orders, backward=2) == [
            (*op, start, end) for op, (_, start, end) in times.items()
        ]


def valid(orders, stages, chunks, kinds):
    """Each work once, in the order of its device, and none before what it needs."""
    times, free, ended = op_clock(orders), [0] * len(orders), {}
    assert sorted(times) == sorted(
        Op(s, kind, i) for s in range(stages) for kind in kinds for i in range(chunks)
    )
    for d, order in enumerate(orders):
        assert [op for op, (at, *_) in times.items() if at == d] == order
    for (s, kind, i), (d, start, end) in times.items():
        assert free[d] <= start
        needs = {"forward": [(s - 1, kind)], "weights": [(s, "input")]}.get(
            kind, [(s, "forward"), (s + 1, kind)]
        )
        assert all(ended[s, k, i] <= start for s, k in needs if 0 <= s < stages)
        ended[s, kind, i] = free[d] = end
    return times


@every_schedule
def test_every_stage_goes_forward_and_backward_once_after_what_it_needs(make):
    for p, m in SIZES:
        valid(make(p, m), p, m, ("forward", "backward"))


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
    (0, 4, "stages must be a whole number of at least 1, not 0"),
    (2, 0, "chunks must be a whole number of at least 1, not 0"),
    (2, 2.5, "chunks must be a whole number of at least 1, not 2.5"),
])
def test_counts_that_are_none_are_refused(make, p, m, message):
    for function in (make, bubble_formula):
        with pytest.raises(ValueError, match=message):
            function(p, m)


# ---- Shorter bubbles ----


def test_interleaved_waits_a_vth_and_holds_what_the_formula_says():
    for p, m, v in GROUPS:
        orders = interleaved(p, m, v)
        times = valid(orders, p * v, m, ("forward", "backward"))
        assert waiting(times) == [3 * (p - 1)] * p
        ahead = [p - 1 - d if v == 1 else 2 * (p - 1 - d) + (v - 1) * p
                 for d in range(p)]
        assert peak_held(orders) == [min(n + 1, m * v) for n in ahead]


def test_interleaved_could_run_ahead_once_a_device_if_messages_took_no_time():
    for p, m, v in GROUPS:
        orders = interleaved(p, m, v)
        shorter = []
        for d, order in enumerate(orders):
            F, B = ([op for op in order if op.kind == kind]
                    for kind in ("forward", "backward"))
            ahead = p - 1 - d + (v - 1) * p
            turns = [op for pair in zip(F[ahead:], B) for op in pair]
            shorter.append(F[:ahead] + turns + B[len(F) - ahead :])
        assert waiting(op_clock(shorter)) == waiting(op_clock(orders))
        late, early = (clock(each, message=1)[-1].end for each in (shorter, orders))
        assert late >= early and (late > early or p == 1 or v == 1 or m == p)


def test_with_one_stage_a_device_interleaved_is_one_f_one_b():
    for p, m, _ in GROUPS:
        assert interleaved(p, m, 1) == one_f_one_b(p, m)


def test_zb_h1_waits_a_third_of_one_f_one_b_and_holds_p_micro_batches():
    for p, m in SIZES:
        orders = zero_bubble(p, m)
        times = valid(orders, p, m, ("forward", "input", "weights"))
        assert waiting(times) == [p - 1 + max(0, p - m)] * p
        assert peak_held(orders) == [min(p, m)] * p


def test_zb_h2_does_not_wait_inside_its_work_and_holds_twice_as_many():
    for p, m in SIZES:
        orders = zero_bubble(p, m, ahead=2)
        times = valid(orders, p, m, ("forward", "input", "weights"))
        inside = []
        for d in range(p):
            own = [(start, end) for at, start, end in times.values() if at == d]
            inside.append(max(own)[1] - min(own)[0] - 3 * m)
        assert max(inside) == max(0, 2 * p - 1 - m)
        assert peak_held(orders) == [min(2 * p - 1, m)] * p


@pytest.mark.parametrize(("make", "message"), [
    (lambda: interleaved(4, 6, 2), "6 micro-batches do not make groups of 4.*use 8"),
    (lambda: interleaved(2, 4, 0), "parts must be a whole number of at least 1, not 0"),
    (lambda: zero_bubble(0, 4), "devices must be a whole number of at least 1, not 0"),
    (lambda: zero_bubble(2, 1.5), "chunks must be a whole number of .* 1, not 1.5"),
    (lambda: op_clock([[Op(0, "input", 0), Op(0, "forward", 0)]]), "is stuck: stage 0"),
])
def test_what_cannot_be_scheduled_is_refused(make, message):
    with pytest.raises(ValueError, match=message):
        make()


def test_weights_before_their_input_are_refused_wherever_a_reader_puts_them():
    for d in range(2):
        for i in range(2):
            orders = zero_bubble(2, 2)
            a, b = (orders[d].index((d, kind, i)) for kind in ("input", "weights"))
            orders[d][a], orders[d][b] = orders[d][b], orders[d][a]
            for check in (op_clock, clock):
                said = f"stage {d} waits to do the weights part of micro-batch {i}"
                with pytest.raises(ValueError, match=said):
                    check(orders)
