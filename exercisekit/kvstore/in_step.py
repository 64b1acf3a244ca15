"""Exercises of the chapter *In step*."""

from itertools import chain

from ..question import Note, Question, Task, by_cases, compared, shown


def shares(numbers, num_workers, b):
    """Parts that differ by one at most, cut into minibatches."""
    size, more = divmod(len(numbers), num_workers)
    ends = [size * rank + min(rank, more) for rank in range(num_workers + 1)]
    parts = [numbers[start:end] for start, end in zip(ends, ends[1:])]
    return [[part[i : i + b] for part in parts] for i in range(0, len(parts[0]), b)]


def _judge_shares(function, numbers, num_workers, b):
    found = function(numbers, num_workers, b)
    steps = [[list(own) for own in step] for step in found]
    parts = [[*chain(*own)] for own in zip(*steps)]
    enough = len(shares(numbers, num_workers, b))
    if any(len(step) != num_workers for step in steps):
        return f"{shown(steps)} has a step without a share for each worker."
    if any(len(own) > b for step in steps for own in step):
        return f"{shown(steps)} has a share of more than {b}."
    if sorted(chain(*parts)) != numbers:
        return f"{shown(steps)} does not have each example once."
    if any(part != [*range(part[0], part[-1] + 1)] for part in parts if part):
        return f"{shown(steps)} gives a worker a part that is not contiguous."
    if len(steps) > enough:
        return f"{shown(steps)} has more steps than needed."
    return Note(f"{len(numbers)} examples, {num_workers} workers, b = {b}: "
                f"{len(steps)} steps ({enough} are enough).")


def sums(pushes, num_workers):
    """A step is complete when each worker has made its push for it."""
    pushed = [[] for _ in range(num_workers)]
    for worker, number in pushes:
        pushed[worker].append(number)
    return [sum(step) for step in zip(*pushed)]


QUESTIONS = {
    1: Question(
        "a list of the divisors, step by step",
        [3, 3, 1],
        [
            ([1, 1, 1], "The sum is over all workers, and so is the divisor."),
            ([3, 3, 3], "In the last step only one example is left."),
            ([3, 3], "The seventh example has a step, too."),
        ],
    ),
    2: Task(
        "a function that returns a list of steps",
        shares,
        [
            ("for i in range(0, len(parts[0]), b)]",
             "for i in range(0, len(parts[-1]) // b * b, b)]",
             "The last, smaller minibatches are left out."),
            ("numbers[start:end] for start, end in zip(ends, ends[1:])",
             "numbers[rank::num_workers] for rank in range(num_workers)",
             "These parts are dealt out in turn."),
            ("range(0, len(parts[0]), b)", "range(len(parts[0]))",
             "The next minibatch begins `b` examples later, and not one."),
            (" + min(rank, more)", "",
             "The rest of the division is nobody's: give it to somebody."),
            ("len(parts[0])", "len(parts[-1])",
             "The number of steps is up to the longest part."),
            ("for part in parts]", "for part in parts if part[i:]]",
             "Who has no example left still takes the step, with an empty share."),
            ("i : i + b", "i : i + b + 1",
             "A slice ends before its end: that is one example too many."),
            (lambda *given: list(zip(*shares(*given))),
             "That is a list for each worker. Expected: one for each step."),
            (lambda numbers, num_workers, b:
             shares([*range(len(numbers))], num_workers, b),
             "These are places in the list, and not the examples themselves."),
        ],
        judge=by_cases(_judge_shares, "Examples {}, {} workers, b = {}", [
            ([*range(100, 100 + n)], num_workers, b) for n, num_workers, b in (
                (1, 1, 1), (3, 1, 2), (1, 2, 3), (9, 2, 2), (7, 3, 1), (10, 4, 3)
            )
        ]),
    ),
    3: Task(
        "a function that returns a list of sums",
        sums,
        [
            (lambda pushes, num_workers: [
                 sum(number for _, number in pushes[i : i + num_workers])
                 for i in range(0, len(pushes), num_workers)],
             "Pushes that come one after another need not be of one step."),
            ("[[] for _ in range(num_workers)]", "[[]] * num_workers",
             "`[[]] * n` is one list, n times: all workers share it."),
            ("[sum(step) for step in zip(*pushed)]",
             ("[sum(own[i] for own in pushed if own[i:]) for i in "
              "range(max(map(len, pushed)))]"),
             "A step for which somebody has not pushed is not complete."),
            ("zip(*pushed)", "zip(*filter(None, pushed))",
             "Who has not pushed at all is waited for, too."),
            ("zip(*pushed)", "pushed",
             "That adds up what a worker has pushed. Expected: a sum over workers."),
            ("sum(step)", "sum(step) / num_workers", "That is a mean."),
            ("pushed[worker].append(number)", "pushed[worker][:] = [number]",
             "An early push for the next step takes the place of the one before."),
            ("zip(*pushed)]", "zip(*pushed)][:1]", "There may be more steps than one."),
        ],
        judge=compared(sums, [
            ([], 1), ([(0, 3)], 1), ([(0, 1)], 2), ([(0, 1), (1, 2), (1, 20)], 2),
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
            ([16, 32], "The fast worker should have more."),
            ([40, 20], "These are 60 examples."),
        ],
    ),
}
