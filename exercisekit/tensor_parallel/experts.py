"""Exercises of the chapter *Experts*."""

from ..question import Question, Task, compared


def dropped(choices, E, most):
    """Return the choices (token, 0 or 1) that come when their expert is full."""
    places, late = [most] * E, []
    for choice in (0, 1):
        for token, chosen in enumerate(choices):
            expert = chosen[choice]
            if places[expert] > 0:
                places[expert] -= 1
            else:
                late.append((token, choice))
    return sorted(late)


def _token_by_token(choices, E, most):
    places, late = [most] * E, []
    for token, chosen in enumerate(choices):
        for choice, expert in enumerate(chosen):
            if places[expert] > 0:
                places[expert] -= 1
            else:
                late.append((token, choice))
    return late


def _not_sorted(choices, E, most):
    return sorted(dropped(choices, E, most), key=lambda late: late[::-1])


def send_counts(wants, E):
    """Return the rows device i sends to device j: a table, zeros for what stays."""
    k = len(wants)
    home = [j for j in range(k) for _ in range(j * E // k, (j + 1) * E // k)]
    counts = [[0] * k for _ in range(k)]
    for i, chosen in enumerate(wants):
        for expert in chosen:
            if home[expert] != i:
                counts[i][home[expert]] += 1
    return counts


def _counts_what_stays(wants, E):
    table = send_counts(wants, E)
    for i, chosen in enumerate(wants):
        table[i][i] = len(chosen) - sum(table[i])
    return table


def _rounded_down(wants, E):
    each = max(1, E // len(wants))
    return [[0 if i == j else sum(e // each == j for e in chosen)
             for j in range(len(wants))] for i, chosen in enumerate(wants)]


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
        "a function `dropped(choices, E, most)`",
        dropped,
        [
            (_token_by_token,
             "Token by token, a second choice takes the place of a later first one."),
            (_not_sorted, "The choices are right, but the list has to be sorted."),
            (lambda choices, E, most:
             [late for late in dropped(choices, E, most) if late[1] == 0],
             "Second choices can be dropped, too."),
        ],
        judge=compared(dropped, [
            ([(0, 1)], 2, 1), ([(0, 1), (2, 1)], 3, 1), ([(0, 1), (1, 0)], 2, 1),
            ([(0, 1), (0, 2), (0, 1)], 4, 2),
            ([(0, 1), (0, 2), (0, 1), (1, 0), (1, 2), (2, 0)], 3, 2),
        ]),
    ),
    3: Task(
        "a function `send_counts(wants, E)`",
        send_counts,
        [
            (_counts_what_stays, "A row that stays on its device is not sent."),
            (lambda wants, E: [list(column) for column in zip(*send_counts(wants, E))],
             "Row i is for what device i sends, not for what it receives."),
            (_rounded_down,
             "If k does not divide E, some devices have more experts than others."),
        ],
        judge=compared(send_counts, [
            ([[0, 1]], 2), ([[0], [0]], 2), ([[0, 0, 1], [1, 1, 0]], 2),
            ([[0, 1, 2, 3], [1]], 4),
            ([[1], [0], [0, 1]], 2), ([[0, 1, 2, 3, 4], [4, 4, 0, 2], [1, 2, 3]], 5),
            ([[2, 3], [0, 2], [1, 4], [2]], 6),
        ]),
    ),
}
