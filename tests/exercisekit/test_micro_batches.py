"""The schedule that the exercise calls enough is the shortest of all."""

import itertools

import pytest

from exercisekit.pipeline import micro_batches


def fewest_slots(p, m, most):
    """Of all schedules of `p` stages that hold `most` micro-batches, slot by slot."""

    def choices(now, s):
        forward, backward = now[s]
        yield forward, backward
        if forward < (now[s - 1][0] if s else m) and forward - backward < most:
            yield forward + 1, backward
        if backward < (forward if s == p - 1 else now[s + 1][1]):
            yield forward, backward + 1

    states, slots = {((0, 0),) * p}, 0
    while ((m, m),) * p not in states:
        states = {after for now in states
                  for after in itertools.product(*(choices(now, s) for s in range(p)))}
        slots += 1
    return slots


@pytest.mark.parametrize("p, m, most", [
    (1, 3, 1), (2, 6, 1), (2, 6, 4), (3, 4, 3), (3, 7, 2), (4, 4, 3), (4, 8, 2),
])
def test_no_schedule_within_the_limit_is_shorter(p, m, most):
    problem, slots, _, held = micro_batches._run(
        micro_batches.limited(p, m, most), p, m)
    assert (problem, slots) == ("", fewest_slots(p, m, most)) and max(held) <= most
