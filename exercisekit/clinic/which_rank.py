"""Exercises of the chapter *Which rank, which call?*."""

from collections import Counter

from ..question import Question, Task, compared


def what_happened(calls):
    """Return the number of the first wrong call, and the missing or odd ranks."""
    for i in range(max(map(len, calls), default=0)):
        made = [own[i] if i < len(own) else None for own in calls]
        usual = Counter(op for op in made if op is not None).most_common(1)[0][0]
        odd = [rank for rank, op in enumerate(made) if op != usual]
        if odd:
            return i + 1, odd
    return None


def _until_the_shortest(calls):
    shortest = min(map(len, calls))
    return what_happened([own[:shortest] for own in calls])


def _from_zero(calls):
    found = what_happened(calls)
    return found and (found[0] - 1, found[1])


def _rank_0_is_right(calls):
    for i in range(max(map(len, calls), default=0)):
        made = [own[i] if i < len(own) else None for own in calls]
        odd = [rank for rank, op in enumerate(made) if op != made[0]]
        if odd:
            return i + 1, odd
    return None


def missing_pushes(calls):
    """Return, for each key, the ranks that pushed it less often than another rank."""
    counts = [Counter(own) for own in calls]
    most = {key: max(each[key] for each in counts) for each in counts for key in each}
    found = {key: [rank for rank, each in enumerate(counts) if each[key] < most[key]]
             for key in most}
    return {key: ranks for key, ranks in found.items() if ranks}


def _never_pushed(calls):
    every = {key for own in calls for key in own}
    found = {key: [rank for rank, own in enumerate(calls) if key not in own]
             for key in every}
    return {key: ranks for key, ranks in found.items() if ranks}


def _keys_of_rank_0(calls):
    found = missing_pushes(calls)
    return {key: found[key] for key in found if key in calls[0]}


def _all_keys(calls):
    every = {key: [] for own in calls for key in own}
    return {**every, **missing_pushes(calls)}


def left_out(mine, theirs):
    """Return the number of `theirs`' only call that `mine` lacks; None if unclear."""
    fits = [i + 1 for i in range(len(theirs)) if theirs[:i] + theirs[i + 1 :] == mine]
    return fits[0] if len(fits) == 1 else None


def _first_difference(mine, theirs):
    for i, line in enumerate(theirs):
        if i == len(mine) or mine[i] != line:
            return i + 1
    return None


def _by_set(mine, theirs):
    for i, line in enumerate(theirs):
        if line not in mine:
            return i + 1
    return None


def _any_that_fits(mine, theirs):
    fits = [i + 1 for i in range(len(theirs)) if theirs[:i] + theirs[i + 1 :] == mine]
    return fits[0] if fits else None


_CASES = [
    ([["sum", "wait"], ["sum", "wait"]],),
    ([["sum", "wait"], ["sum"], ["sum", "wait"]],),
    ([["sum"], ["sum", "wait"], ["sum", "wait"]],),
    ([["sum", "give", "wait"], ["sum", "wait"], ["sum", "give", "wait"]],),
    ([["give", "sum"], ["sum", "give"], ["sum", "give"], ["sum", "give"]],),
    ([["sum", "wait"], ["sum"], ["sum"], ["sum"]],),
    ([["sum", "wait"], ["sum", "give"], ["sum"], ["sum", "wait"]],),
    ([[], [], []],),
]
_PUSHES = [
    ([[0, 1], [1, 0]],),
    ([[0, 1, 0, 1], [0, 1, 1]],),
    ([[0, 0, 0], [0, 0], [0, 0, 0]],),
    ([[0, 0, 0], [0, 0], [0]],),
    ([[0], [0, 7], [7, 0]],),
    ([[3, 4, 3], [4, 3, 4], [3, 4, 3]],),
    ([[], []],),
]
_LINES = [
    ([5, 9], [5, 7, 9]), ([5, 7], [5, 7, 9]), ([7, 9], [5, 7, 9]),
    ([5, 7, 5, 5, 7, 9], [5, 7, 9, 5, 5, 7, 9]), ([5, 7, 9, 5, 9], [5, 7, 9, 5, 7, 9]),
    ([5, 5], [5, 5, 5]), ([5, 8], [5, 7, 9]), ([5, 7], [5, 7]), ([5], [5, 7, 9]),
    ([], [5]),
]

QUESTIONS = {
    1: Question(
        "the number of a call",
        58,
        [
            (57, "That call has ended on rank 3, so rank 3 took part in it."),
            (59, "Rank 3 has not made call 58 either."),
            (3, "That is the rank. Which call?"),
        ],
    ),
    2: Task(
        "a function `what_happened(calls)`",
        what_happened,
        [
            (_until_the_shortest,
             "`zip` ends with the shortest list, and a missing call is beyond it."),
            (_from_zero, "Calls are counted from 1."),
            (_rank_0_is_right, "Rank 0 may be the one that is wrong."),
        ],
        judge=compared(what_happened, _CASES),
    ),
    3: Task(
        "a function `missing_pushes(calls)`",
        missing_pushes,
        [
            (_never_pushed,
             "A rank may have pushed the key, but less often than another."),
            (_keys_of_rank_0, "Rank 0 may be the one that never pushed a key."),
            (_all_keys, "Leave out the keys that all ranks have pushed equally often."),
        ],
        judge=compared(missing_pushes, _PUSHES),
    ),
    4: Task(
        "a function `left_out(mine, theirs)`",
        left_out,
        [
            (_first_difference,
             "Another call may fit as well, and the calls after it must match, too."),
            (_by_set, "Another call may come from the same line."),
            (_any_that_fits, "Several calls could be the missing one: return None."),
        ],
        judge=compared(left_out, _LINES),
    ),
}
