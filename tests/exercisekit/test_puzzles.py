"""Targets of the puzzles can be reached, are not met by a first attempt, and no search
finds better than what is called the best."""

import heapq
import itertools

import numpy
import pytest

from exercisekit.question import says
from exercisekit.scale.puzzles import QUESTIONS as TWELVE
from exercisekit.scale.puzzles import messages, plans, steps

each = pytest.mark.parametrize("n", TWELVE)


@each
def test_the_solution_reaches_what_is_called_the_best(n):
    q = TWELVE[n]
    assert q.least <= q.best <= q.target < q.first
    said = f"{q.unit}: {q.best}; the target was {q.target}, the best known is {q.best}."
    assert says(q, q.right) == f"right. {said}"


@each
def test_the_first_attempt_is_right_and_misses_the_target(n):
    q = TWELVE[n]
    function, words = q.wrong[0]
    said = f"not yet. Right so far. {q.unit}: {q.first}; the target is {q.target}."
    assert says(q, function) == f"{said} {words}"


def into_one_device(data, exchange):
    n = len(data[0]) // 4
    part = [slice(i * n, (i + 1) * n) for i in range(4)]
    for i in (1, 2, 3):
        data[i][part[i]] = exchange({(0, i): data[0][part[i]]})[0, i]
    for i in range(4):
        data[4][part[i]] = exchange({(i, 4): data[i][part[i]]})[i, 4]
    for host in (0, 4):
        for i in (1, 2, 3):
            data[host + i][:] = exchange({(host, host + i): data[host]})[host, host + i]


def test_a_slow_link_is_busy_at_both_ends():
    """Four devices send a quarter each, and one receives all of them."""
    said = says(TWELVE[5], into_one_device)
    assert "Bytes on the busiest slow link: 512; the target is 128." in said


def test_one_number_for_each_row_is_one_more_than_needed():
    said = says(TWELVE[6], messages._one_for_each_row)
    assert said.startswith("right. Numbers from each device: 7;")


def sums_of_arrays(step, batches):
    import mxnet

    first, second = map(mxnet.np.concatenate, zip(*map(step, batches)))
    return (first.sum() + second.sum().as_in_ctx(first.ctx)).item()


def renamed(names):
    return [[f"{kind}{names[int(m)]}" for kind, m in row] for row in plans.schedule()]


@pytest.mark.parametrize("n, function", [
    (1, sums_of_arrays),
    (3, lambda lines: "\n".join(steps.mend(lines))),
    (6, lambda parts, y, gather: messages.split_loss(
        parts, y, lambda values: gather(value for value in values))),
    (9, lambda probe, n: {*steps.two_slow(probe, n)}),
    (9, lambda probe, n: numpy.array(steps.two_slow(probe, n))),
    (10, lambda: map(iter, plans.schedule())),
    (10, lambda: renamed([1, 0, 2, 3])), (10, lambda: renamed([3, 2, 1, 0])),
    (11, lambda layers, cap: ([2, 4, 7], (i for i in (5, 6)))),
])
def test_the_best_answer_may_be_written_in_another_way(n, function):
    said = says(TWELVE[n], function)
    assert said.startswith(f"right. {TWELVE[n].unit}: {TWELVE[n].best};")


def backward_before_forward():
    first, second, third = plans.schedule()
    return [first, second, ["F1", "B0", "F0", *third[3:]]]


def two_lines_in_an_entry(lines):
    both = "        pass\n    data[1:] = data[:1] * (len(data) - 1)"
    return [*lines[:4], both, *lines[5:]]


def test_a_line_is_counted_wherever_it_stands_and_its_end_is_not():
    said = says(TWELVE[3], two_lines_in_an_entry)
    assert "Changed lines: 2; the target is 1." in said
    said = says(TWELVE[3], lambda lines: [f"{line}\n" for line in steps.mend(lines)])
    assert said.startswith("right. Changed lines: 1;")


def reads_all_at_the_end(step, batches):
    return sum(float(loss) for pair in [*map(step, batches)] for loss in pair)


def holds_a_weight_back():
    """On the first device F2 waits for W0, which could be done before B1."""
    row = ["F0", "F1", "B0", "B1", "W0", "F2", "W1", "F3", "B2", "B3", "W2", "W3"]
    return [row, row, plans.schedule()[2]]


@pytest.mark.parametrize("n, function, words", [
    (1, reads_all_at_the_end, "before the next"),
    (7, lambda *given: [[7], [6, 5], [4, 3], [2], [1], [0]], "starts late"),
    (8, steps._from_kept(3, 7), "These are equal parts"),
    (10, holds_a_weight_back, "right after B"),
    (11, lambda layers, cap: ([2, 4, 7], [5, 6, 7, 8]), "no choice is cheaper"),
])
def test_a_hint_is_true_for_each_way_with_the_same_count(n, function, words):
    """The judge compares counts, which other ways may have as well."""
    said = says(TWELVE[n], function)
    assert said.startswith("not yet. Right so far.") and words not in said


def test_a_solution_in_copies_is_not_told_that_a_quarter_arrived():
    said = says(TWELVE[5], lambda data, exchange: messages.spread(
        [x.copy() for x in data], exchange))
    assert said.endswith("Each device needs all four quarters, in `data` itself.")


# What was not sent cannot be known: a function that looks at others' arrays is refused.


def reads_four(data, exchange):
    data[:3] = numpy.concatenate(data).reshape(3, -1)


def reads_eight(data, exchange):
    for x in data[1:]:
        x[:] = data[0]


def reads_six(data, exchange):
    total = sum(data)
    for x in data:
        x[:] = total


@pytest.mark.parametrize("n, function", [
    (4, reads_four), (5, reads_eight), (12, reads_six),
])
def test_arrays_that_were_not_sent_are_not_read(n, function):
    said = says(TWELVE[n], function)
    assert f"{TWELVE[n].unit}: 0, and {TWELVE[n].least} is the least" in said


def gathers_the_sums_only(parts, y, gather):
    own = [p.max(1) + numpy.log(numpy.exp(p - p.max(1)[:, None]).sum(1)) for p in parts]
    whole = numpy.logaddexp.reduce(gather(own))
    return numpy.mean([whole[r] - parts[c // 8][r, c % 8] for r, c in enumerate(y)])


@pytest.mark.parametrize("function", [
    gathers_the_sums_only,
    lambda parts, y, gather: messages.split_loss(parts, y, lambda values: values),
])
def test_logits_that_were_not_sent_are_not_read(function):
    assert says(TWELVE[6], function) == (
        "not yet. The loss depends on logits of other devices that were not sent."
    )


def adds_up_on_device_0(parts, y, gather):
    """Device 0 sends its numbers for the sums, but no part of the loss."""
    calls = []

    def gather_from_others(values):
        calls.append(values)
        if len(calls) == 1:
            return gather(values)
        return [values[0], *gather([[], *values[1:]])[1:]]

    return messages.split_loss(parts, y, gather_from_others)


def test_a_device_need_not_send_what_only_it_uses():
    assert says(TWELVE[6], adds_up_on_device_0).startswith("right. Numbers from each")


@pytest.mark.parametrize("n, function, words", [
    (2, lambda sizes, servers: [0, 1, 2, 3, 0, 1, 2, 3], "is not a server, 0 to 2"),
    (3, lambda lines: lines[:-1], "It leads to TypeError"),
    (8, lambda tape, layers, slots: tape.back_to(3), "activation 3 is not kept"),
    (8, lambda tape, layers, slots: tape.backward(),
     "layer 12 needs activation 11, not 0"),
    (8, lambda tape, layers, slots: [tape.forward() for _ in range(13)],
     "layer 13 is not among the layers left"),
    (10, lambda: [["B0"]], "each of F0 to W3 once"),
    (4, lambda data, exchange: data.__setitem__(0, numpy.zeros((3, 4))),
     "Device 0's array has the shape (3, 4), not (12,)."),
    (7, lambda *given: [[], *plans.hide(*given)], "has an empty bucket"),
    (10, lambda: [" ".join(row) for row in plans.schedule()], "and one is 'F0 F1 B0"),
    (10, backward_before_forward, "forever after 4 ticks, before B0, B0, B0"),
    (11, lambda layers, cap: ([2, 4, 7], [[], [], [5, 6], []]),
     "is not a list of layers, 0 to 9"),
    (12, lambda data, exchange: exchange({(0, 1): data[0], (0, 2): data[0]}),
     "receive only one in a round, not [(0, 1), (0, 2)]"),
])
def test_what_cannot_be_done_is_named(n, function, words):
    assert words in says(TWELVE[n], function)


# The searches.


def fewest_steps(layers, slots):
    """Of all states of the tape: (at hand, kept, layers left), by Dijkstra."""
    queue, seen = [(0, 0, (), layers)], set()
    while queue:
        steps, at, kept, left = heapq.heappop(queue)
        if not left:
            return steps
        if (at, kept, left) in seen:
            continue
        seen.add((at, kept, left))
        following = [(steps, i, kept, left) for i in (0, *kept)]
        following += [(steps, at, tuple(k for k in kept if k != i), left) for i in kept]
        if at < left - 1:
            following.append((steps + 1, at + 1, kept, left))
        elif at == left - 1:
            following.append((steps, at, tuple(k for k in kept if k < at), left - 1))
        if len(kept) < slots and at not in (0, *kept):
            following.append((steps, at, tuple(sorted((*kept, at))), left))
        for state in following:
            heapq.heappush(queue, state)
    raise AssertionError("no way was found")


def soonest(stages, batches, held):
    """Ticks of the best schedule: all that can be done, tick by tick."""
    done = ((batches,) * 3,) * stages
    states, now = {((0, 0, 0),) * stages}, 0
    while done not in states:
        states = {
            after for before in states
            for after in itertools.product(*(
                choices(before, s, batches, held) for s in range(stages)
            ))
        }
        now += 1
    return now


def choices(before, s, batches, held):
    """The counts of F, B and W that device s may have a tick later."""
    f, b, w = before[s]
    yield f, b, w
    if f < (before[s - 1][0] if s else batches) and f - w < held:
        yield f + 1, b, w
    if b < (f if s == len(before) - 1 else min(f, before[s + 1][1])):
        yield f, b + 1, w
    if w < b:
        yield f, b, w + 1


def test_the_best_known_is_what_a_search_of_all_ways_finds():
    """The solutions of puzzles 2, 7 and 11 try all ways themselves."""
    assert TWELVE[8].best == fewest_steps(12, 2)
    assert TWELVE[10].best == soonest(plans.STAGES, plans.BATCHES, plans.HELD)


def test_five_probes_are_too_few_for_45_pairs():
    assert 2**5 < len([*itertools.combinations(range(10), 2)]) <= 2 ** TWELVE[9].best
