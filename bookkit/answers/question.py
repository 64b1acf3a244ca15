"""A question with its right answer, and what typical wrong ones suggest."""

import math
import resource
import signal
import threading
from contextlib import contextmanager
from dataclasses import dataclass
from numbers import Number
from pathlib import Path

NOT_YET = "no answer yet."
#: What the learner's code may take: seconds, and bytes beside what is there already.
SECONDS, ROOM = 10, 4 << 30


class TooLong(BaseException):
    """The learner's code took its time. No `except Exception` of it catches this."""


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
    names = dict(getattr(answer, "__globals__", {}))
    try:
        with _limits():
            problem = task.judge(answer)
    except TooLong:
        problem = f"It has not ended after {SECONDS} seconds: does a loop never end?"
    except MemoryError:
        problem = f"It asks for more than {ROOM >> 30} GiB of memory."
    except (Exception, SystemExit) as error:  # noqa: BLE001 - it may raise anything
        problem = f"It raises {type(error).__name__}: {error}"
    changed = _put_back(names, getattr(answer, "__globals__", {}))
    if changed and not problem:
        problem = f"It changes {', '.join(changed)}, outside of itself: put back."
    return f"not yet. {problem}" if problem else "right."


@contextmanager
def _limits():
    """Time and memory are bounded, where the system can: not in another thread."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return

    def too_long(*_):
        raise TooLong

    timer = signal.getitimer(signal.ITIMER_REAL)
    before = signal.signal(signal.SIGALRM, too_long)
    most = resource.getrlimit(resource.RLIMIT_AS)
    used = int(Path("/proc/self/statm").read_text("ascii").split()[0])
    limit = used * resource.getpagesize() + ROOM
    try:
        if most[0] == resource.RLIM_INFINITY:
            resource.setrlimit(resource.RLIMIT_AS, (limit, most[1]))
        signal.setitimer(signal.ITIMER_REAL, SECONDS, 1)  # again, if it was caught
        yield
    finally:
        signal.signal(signal.SIGALRM, before)
        signal.setitimer(signal.ITIMER_REAL, *timer)
        resource.setrlimit(resource.RLIMIT_AS, most)


def _put_back(names, now):
    """What was bound anew among `names`, put back as it was; the names in question."""
    changed = sorted(name for name in names if now.get(name) is not names[name])
    now.update({name: names[name] for name in changed})
    return changed


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
