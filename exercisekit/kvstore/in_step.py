"""Exercises of the chapter *In step*."""

from itertools import chain, zip_longest

from ..question import Note, Question, Task, by_cases, compared, shown


def shares(numbers, num_workers, b):
    """Return contiguous parts, at most one longer than another, as minibatches."""
    size, more = divmod(len(numbers), num_workers)
    ends = [size * rank + min(rank, more) for rank in range(num_workers + 1)]
    parts = [numbers[start:end] for start, end in zip(ends, ends[1:])]
    return [[part[i : i + b] for part in parts] for i in range(0, len(parts[0]), b)]


def _full_only(numbers, num_workers, b):
    steps = shares(numbers, num_workers, b)
    return [step for step in steps if all(len(own) == b for own in step)]


def _in_turn(numbers, num_workers, b):
    parts = [numbers[rank::num_workers] for rank in range(num_workers)]
    return [[part[i : i + b] for part in parts] for i in range(0, len(parts[0]), b)]


def _no_remainder(numbers, num_workers, b):
    size = len(numbers) // num_workers
    return shares(numbers[: size * num_workers], num_workers, b)


def _judge_shares(function, numbers, num_workers, b):
    found = function(numbers, num_workers, b)
    steps = [[list(own) for own in step] for step in found]
    parts = [[*chain(*own)] for own in zip(*steps)]
    enough = len(shares(numbers, num_workers, b))
    if any(len(step) != num_workers for step in steps):
        return f"a step of {shown(steps)} does not have one share per worker."
    if any(len(own) > b for step in steps for own in step):
        return f"{shown(steps)} has a share of more than {b} examples."
    if sorted(chain(*parts)) != numbers:
        return f"{shown(steps)} does not contain each example exactly once."
    if any(sorted(part) != [*range(min(part), max(part) + 1)]
           for part in parts if part):
        return f"{shown(steps)} gives a worker a part that is not contiguous."
    if len(steps) > enough:
        return f"{shown(steps)} has {len(steps)} steps instead of {enough}."
    return Note(f"{len(numbers)} examples, {num_workers} workers, b = {b}: "
                f"steps: {len(steps)}.")


def sums(pushes, num_workers):
    """Return the sum of each step for which every worker has pushed."""
    pushed = [[] for _ in range(num_workers)]
    for worker, number in pushes:
        pushed[worker].append(number)
    return [sum(step) for step in zip(*pushed)]


def _as_they_come(pushes, num_workers):
    numbers = [number for _, number in pushes]
    starts = range(0, len(numbers), num_workers)
    return [sum(numbers[i : i + num_workers]) for i in starts]


def _one_list(pushes, num_workers):
    pushed = [[]] * num_workers
    for worker, number in pushes:
        pushed[worker].append(number)
    return [sum(step) for step in zip(*pushed)]


def _incomplete(pushes, num_workers):
    pushed = [[x for w, x in pushes if w == worker] for worker in range(num_workers)]
    return [sum(step) for step in zip_longest(*pushed, fillvalue=0)]


QUESTIONS = {
    1: Question(
        "a list of the divisors, step by step",
        [3, 3, 1],
        [
            ([1, 1, 1], "The sum is over all workers, and so is the divisor."),
            ([3, 3, 3], "In the last step only one example is left."),
            ([3, 3], "The seventh example needs a step, too."),
        ],
    ),
    2: Task(
        "a function `shares(numbers, num_workers, b)`",
        shares,
        [
            (_full_only, "The last, smaller minibatches are left out."),
            (_in_turn, "These parts are dealt out in turn. Make them contiguous."),
            (_no_remainder,
             "The remainder of the division is missing: give it to the first workers."),
        ],
        judge=by_cases(_judge_shares, "Examples {}, {} workers, b = {}", [
            ([*range(100, 100 + n)], num_workers, b) for n, num_workers, b in (
                (1, 1, 1), (3, 1, 2), (1, 2, 3), (9, 2, 2), (7, 3, 1), (10, 4, 3)
            )
        ]),
    ),
    3: Task(
        "a function `sums(pushes, num_workers)`",
        sums,
        [
            (_as_they_come, "Successive pushes need not belong to one step."),
            (_one_list, "`[[]] * n` is one list, n times: all workers share it."),
            (_incomplete, "A step is complete only when every worker has pushed."),
        ],
        judge=compared(sums, [
            ([], 1), ([(0, 3)], 1), ([(0, 1)], 2), ([(0, 1), (1, 2), (1, 20)], 2),
            ([(0, 0), (0, 0), (1, 2), (1, 2)], 2),
            ([(0, 1), (1, 2), (1, 20), (0, 10)], 2),
            ([(0, 1), (0, 10), (1, 2), (1, 20)], 2),
            ([(2, 1), (2, 2), (2, 3), (0, 4), (1, 5), (0, 6)], 3),
        ]),
    ),
    5: Question(
        "a list: the examples of worker 0 and of worker 1",
        [32, 16],
        [
            ([24, 24], "Worker 1 would need twice as long as worker 0."),
            ([16, 32], "The fast worker should get more examples."),
            ([40, 20], "That adds up to 60 examples."),
        ],
    ),
}
