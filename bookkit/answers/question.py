"""A question with its right answer, and what typical wrong ones suggest."""

import math
from dataclasses import dataclass
from numbers import Number

NOT_YET = "no answer yet."


@dataclass(frozen=True)
class Question:
    """`asked` says what the answer is, in words: "the number of rounds".

    `wrong` is a list of pairs: a typical wrong answer, and what it suggests.
    `tolerance` is relative, for numbers that are rounded or measured on paper.
    """

    asked: str
    right: object
    wrong: tuple = ()
    tolerance: float = 0.0


@dataclass(frozen=True)
class Task(Question):
    """Asks for code: `right` is a function that does it, `wrong` are typical ones.

    `judge` takes the learner's function, tries it, and returns what is not right, with
    the numbers; "" if all is well. What the function raises is told, too.
    """

    judge: object = None


def same(answer, expected, tolerance=0.0):
    """Whether two answers are equal; numbers up to a relative `tolerance`."""
    if isinstance(expected, (list, tuple)):
        return (
            _is_list(answer)
            and len(answer) == len(expected)
            and all(same(a, e, tolerance) for a, e in zip(answer, expected))
        )
    if isinstance(expected, str):
        return isinstance(answer, str) and answer.strip().lower() == expected
    if isinstance(expected, bool) or isinstance(answer, bool):
        return answer is expected
    # A little room always: 0.1 + 0.2 is an answer of 0.3.
    return isinstance(answer, Number) and math.isclose(
        answer, expected, rel_tol=max(tolerance, 1e-9)
    )


def says(question, answer):
    """What to tell the reader who answered `question` with `answer`."""
    answer = _plain(answer)
    if answer is None:
        return f"{NOT_YET} Asked is {question.asked}."
    if isinstance(question, Task):
        return _judged(question, answer)
    if same(answer, question.right, question.tolerance):
        return "right."
    for typical, suggestion in question.wrong:
        if same(answer, typical, question.tolerance):
            return f"not yet. {suggestion}"
    return f"not yet{_direction(answer, question.right)} Asked is {question.asked}."


def _judged(task, answer):
    """What to tell the reader who wrote the function `answer`."""
    if not callable(answer):
        return f"not yet. Asked is {task.asked}."
    try:
        problem = task.judge(answer)
    except Exception as error:  # noqa: BLE001 - the learner's code may raise anything
        problem = f"It raises {type(error).__name__}: {error}"
    return f"not yet. {problem}" if problem else "right."


def _plain(answer):
    """NumPy's and MXNet's arrays and numbers as Python's."""
    return answer.tolist() if hasattr(answer, "tolist") else answer


def _is_list(answer):
    return isinstance(answer, (list, tuple))


def _is_number(answer):
    return isinstance(answer, Number) and not isinstance(answer, bool)


def _direction(answer, right):
    if _is_number(answer) and _is_number(right):
        return ", too small." if answer < right else ", too large."
    if _is_list(answer) and _is_list(right) and len(answer) != len(right):
        return f": {len(right)} numbers are needed."
    return "."
