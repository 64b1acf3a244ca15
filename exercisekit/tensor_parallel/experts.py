"""Exercises of the chapter *Experts*."""

from itertools import chain

from ..question import Question, Task, compared


def dropped(choices, E, most):
    """The choices (token, 0 or 1) that come when their expert has no place left."""
    places, late = [most] * E, []
    for c in (0, 1):
        for t, both in enumerate(choices):
            places[both[c]] -= 1
            if places[both[c]] < 0:
                late.append((t, c))
    return sorted(late)


def _token_by_token(choices, E, most):
    return [
        (t, c) for t, both in enumerate(choices) for c in (0, 1)
        if [*chain(*choices[:t])].count(both[c]) >= most
    ]


def send_counts(wants, E):
    """Rows from device i to device j: a table, with zeros for what stays."""
    k = len(wants)
    home = [j for j in range(k) for _ in range(j * E // k, (j + 1) * E // k)]
    return [
        [sum(home[e] == j != i for e in wants[i]) for j in range(k)] for i in range(k)
    ]


QUESTIONS = {
    1: Question(
        "the number of places of an expert",
        160,
        [
            (80, "There are two experts per token."),
            (128, "The capacity factor is 1.25."),
            (10240, "That is for all experts together."),
        ],
    ),
    2: Task(
        "your function dropped",
        dropped,
        [
            (lambda choices, E, most: [], "An expert has `most` places, and no more."),
            (_token_by_token,
             "Token by token, a second choice takes the place of a later first one."),
            ("sorted(late)", "late", "They are right; the list is to be sorted."),
            ("< 0", "<= 0", "The last place is a place: one fewer is late."),
            ("< 0", ">= 0", "These are the choices that find a place."),
            ("for t, both", "places = [most] * E\n        for t, both",
             "First and second choices share an expert's places."),
            ("for c in (0, 1)", "for c in (0,)", "Second choices can be late, too."),
            ("for c in (0, 1)", "for c in (1, 0)", "First choices go first."),
            ("late.append((t, c))", "late.append((t, both[c]))",
             "Expected: which choice it was, 0 or 1, and not its expert."),
        ],
        judge=compared(dropped, [
            ([(0, 1)], 2, 1), ([(0, 1), (2, 1)], 3, 1), ([(0, 1), (1, 0)], 2, 1),
            ([(0, 1), (0, 2), (0, 1)], 4, 2),
            ([(0, 1), (0, 2), (0, 1), (1, 0), (1, 2), (2, 0)], 3, 2),
        ]),
    ),
    3: Task(
        "your function send_counts",
        send_counts,
        [
            ("home[e] == j != i", "home[e] == j",
             "What stays on a device is not sent."),
            ("home[e] == j != i for e in wants[i]",
             "home[e] == i != j for e in wants[j]",
             "Row i is what device i sends, and not what it gets."),
            ("home[e] == j", "e == j", "That takes an expert's number for a device's."),
            ("[j for j in range(k) for _ in range(j * E // k, (j + 1) * E // k)]",
             "[e // max(1, E // k) for e in range(E)]",
             "With more experts for some devices, that is not where they are."),
            ("[j for j in range(k) for _ in range(j * E // k, (j + 1) * E // k)]",
             "[e * k // E for e in range(E)]",
             "Rounded like that, other devices have the greater shares."),
            ("[j for j in range(k) for _ in range(j * E // k, (j + 1) * E // k)]",
             "[e % k for e in range(E)]",
             "The experts are not dealt out in turn: each device has a run of them."),
            ("(j + 1) * E // k)", "(j + 1) * E // k - 1)",
             "A range ends before its second number: that is the -1."),
            ("for e in wants[i]", "for e in set(wants[i])",
             "Two tokens that want the same expert are two rows."),
        ],
        judge=compared(send_counts, [
            ([[0, 1]], 2), ([[0], [0]], 2), ([[0, 0, 1], [1, 1, 0]], 2),
            ([[0, 1, 2, 3], [1]], 4),
            ([[0, 1, 2, 3, 4], [4, 4, 0, 2], [1, 2, 3]], 5),
        ]),
    ),
}
