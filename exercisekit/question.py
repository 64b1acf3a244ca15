"""Questions, with right answers, and hints for typical wrong ones."""

import copy
import inspect
import math
import re
import sys
import traceback
from contextlib import nullcontext, suppress
from dataclasses import dataclass
from decimal import Decimal
from itertools import zip_longest
from numbers import Real

from . import trial
from .trial import TooLong, in_a_child, limits, too_long

NOT_YET = "no answer yet."
#: The largest number of entries of a list that a message shows.
LONGEST = 20


class Note(str):
    """A judge's remark about code that is right, such as what it used."""

    __slots__ = ()


@dataclass(frozen=True)
class Question:
    """A question with a short answer.

    `asked`: the answer in words, such as "the number of rounds". `wrong`: pairs of a
    typical wrong answer and a hint. `tolerance`: relative, for rounded numbers.
    """

    asked: str
    right: object
    wrong: tuple = ()
    tolerance: float = 0.0


@dataclass(frozen=True)
class Task(Question):
    """A question that asks for code; `right`: the reference function or class.

    `judge`: a function that runs the learner's function and returns its fault, with
    numbers, or "". It may also yield a fault per case, of which the first is reported.
    Exceptions of the function are reported, too, and so is a `Note` about right code,
    such as the judges of `counts` make. `wrong`: pairs of a function with a typical
    mistake and its hint. The learner gets the hint if the judge reports the same faults
    as for that mistake.
    """

    judge: object = None


def by_cases(problem, words, cases):
    """Return a judge that reports the fault `problem(function, *case)` of each of
    `cases`.

    `cases`: tuples, the smallest first; each call gets copies. `words`: a template for
    a case, put before its fault, such as "{} devices". Exceptions that the function
    raises, and changes to its arguments, are faults. The `Note` of the last case is
    reported.
    """

    def judge(function):
        note = ""
        for case in cases:
            given, said = copy.deepcopy(case), of_case(words, case)
            try:
                found = problem(function, *given)
            except MemoryError:
                raise
            except (Exception, SystemExit) as error:  # noqa: BLE001 - the learner's
                yield f"{said}: it {raises(error, function)}"
                continue
            if not are_equal(as_python(given), as_python(case)):
                yield f"{said}: it changes its arguments."
            elif isinstance(found, Note):
                note = found
            elif found:
                yield f"{said}: {found}"
        yield note

    return judge


def of_case(words, case):
    """Return `words` with the arguments of a case, in short form."""
    said = words.format(*(x if isinstance(x, int) else shown(x) for x in case))
    # "1 devices" is one device, "1 losses" one loss; "3 and 1 rows" are rows.
    one = r"(?<![\w.,])(?<!and )1 ((?:hidden )?\w+?)(?:(?<=ss)es|s)\b"
    return re.sub(one, r"1 \1", said)


def compared(right, cases, tolerance=0.0):
    """Return a judge that compares the results with those of `right` for each of
    `cases`.

    Numbers in lists, tuples, dicts and arrays may differ by the relative `tolerance`.
    """

    def problem(function, *given):
        expected, found = right(*copy.deepcopy(given)), function(*given)
        if are_equal(as_python(found), as_python(expected), tolerance):
            return ""
        if inspect.isgenerator(found) or inspect.iscoroutine(found):
            kind = type(found).__name__
            return f"it returns a {kind}: return {shown(expected)} itself."
        return "it returns {}, not {}.".format(*told_apart(found, expected))

    call = f"{right.__name__}({', '.join(['{}'] * len(cases[0]))})"
    return by_cases(problem, call, cases)


def raises(error, function=None):
    """Return the end of a sentence, such as "raises KeyError: 3.".

    It is "leads to …" if a judge raises the error on the function's result, with the
    question whether a `return` is missing if it finds None.
    """
    said = f"{type(error).__name__}: {str(error).rstrip('.')}."
    if _passed_through(error, function):
        return f"raises {said}"
    return f"leads to {said}{' Is a `return` missing?' * ('NoneType' in said)}"


def _passed_through(error, function):
    """Return whether `function`, or its inner code, raised `error`; true if unknown.

    Of a class, the methods count.
    """
    is_class = inspect.isclass(function)
    parts = inspect.getmembers(function) if is_class else [("", function)]
    codes = [part.__code__ for _, part in parts if hasattr(part, "__code__")]
    for code in codes:
        codes += [each for each in code.co_consts if inspect.iscode(each)]
    entered = {frame.f_code for frame, _ in traceback.walk_tb(error.__traceback__)}
    # A call such as "f() takes 1 positional argument but 2 were given" enters nothing.
    return not codes or any(
        code in entered or f"{code.co_name}() " in str(error) for code in codes)


def shown(value):
    """Return a short form of a value, for a sentence."""
    if getattr(value, "size", 0) > 8:
        return f"array of shape {tuple(value.shape)}"
    value = as_python(value) if hasattr(value, "tolist") else value
    if isinstance(value, float):
        return f"{value:.6g}"
    if _is_list(value):
        inside = ", ".join(map(shown, value[:LONGEST]))
        inside += f", … {len(value):,} entries" if len(value) > LONGEST else ""
        comma = "," * (len(value) == 1)
        return f"[{inside}]" if isinstance(value, list) else f"({inside}{comma})"
    return repr(value)


def told_apart(found, expected):
    """Return two different values in a short form, or in full if those are equal."""
    if _is_list(expected):
        found = as_python(found)  # an array's numbers
    pair = shown(found), shown(expected)
    if pair[0] == pair[1]:  # the digits that are not shown
        pair = repr(as_python(found)), repr(as_python(expected))
    return pair


def are_equal(answer, expected, tolerance=0.0):
    """Return whether two answers are equal, numbers up to a relative `tolerance`."""
    if isinstance(expected, (list, tuple)):
        return _is_list(answer) and len(answer) == len(expected) and (
            _same_floats(answer, expected)
            or all(are_equal(a, e, tolerance) for a, e in zip(answer, expected))
        )
    if isinstance(expected, str):
        return isinstance(answer, str) and answer.strip().lower() == expected
    if isinstance(expected, bool) or isinstance(answer, bool) or expected is None:
        return answer is expected
    if isinstance(expected, bytes):
        return answer == expected
    if isinstance(expected, dict):
        return (
            isinstance(answer, dict)
            and answer.keys() == expected.keys()
            and all(are_equal(answer[key], expected[key], tolerance)
                    for key in expected)
        )
    # Always allow rounding: 0.1 + 0.2 must pass for 0.3.
    try:
        return isinstance(answer, (Real, Decimal)) and (
            math.isclose(answer, expected, rel_tol=max(tolerance, 1e-9), abs_tol=1e-12)
            or math.isnan(answer) and math.isnan(expected)
        )
    except OverflowError:  # a whole number that no float can hold
        return answer == expected


def _same_floats(answer, expected):
    """Return whether both hold the same floats: a fast comparison of long lists."""
    kinds = {*map(type, answer), *map(type, expected)}
    return kinds == {float} and [*answer] == [*expected]


def says(question, answer):
    """Return the text for a reader who answered `question` with `answer`."""
    answer = as_python(answer)
    if answer is None:
        return f"{NOT_YET} Expected: {question.asked}."
    if isinstance(question, Task):
        return _judged(question, answer)
    if are_equal(answer, question.right, question.tolerance):
        return "right."
    for typical, suggestion in question.wrong:
        if are_equal(answer, typical, question.tolerance):
            return f"not yet. {suggestion}"
    return f"not yet{_direction(answer, question.right)} Expected: {question.asked}."


def _judged(task, answer):
    """Return the text for a reader who wrote the function `answer`."""
    if not callable(answer):
        return f"not yet. Expected: {task.asked}."
    problem, notes = in_a_child(lambda: _tried(task, answer),
                                lambda words: (words, []))
    return f"not yet. {problem}" if problem else " ".join(["right.", *notes])


def _tried(task, answer):
    """Return (fault of the function `answer` or "", further text)."""
    names, verdict = dict(getattr(answer, "__globals__", {})), []
    try:
        with limits():
            verdict = [*_verdict(task, answer)]
        problems = [*filter(_is_problem, verdict)]
        problem = f"{problems[0]} {_meant(task, problems)}".rstrip() if problems else ""
    except TooLong as error:
        problem = too_long(error)
    except MemoryError:
        problem = f"It needs more than {trial.ROOM >> 30} GiB of memory."
    now = getattr(answer, "__globals__", {})
    changed = sorted(name for name in names if now.get(name) is not names[name])
    if changed and not problem:
        problem = f"It changes variables outside the function: {', '.join(changed)}."
    return problem, verdict


def _verdict(task, function):
    """Yield the faults of `function`, and notes."""
    numpy = sys.modules.get("numpy")
    try:
        # The judge reports an overflow: NumPy need not warn.
        with numpy.errstate(all="ignore") if numpy else nullcontext():
            found = task.judge(function)
            yield from filter(None, [found] if isinstance(found, str) else found)
    except MemoryError:
        raise
    except (Exception, SystemExit) as error:  # noqa: BLE001 - it may raise anything
        yield f"It {raises(error, function)}"


def _meant(task, problems):
    """Return the hint for the typical mistake with the same `problems`, or ""."""
    with suppress(TooLong), limits():
        for function, words in task.wrong:
            said = filter(_is_problem, _verdict(task, function))
            # The first difference is enough: later cases are larger.
            if all(a == b for a, b in zip_longest(said, problems)):
                return words
    return ""


def _is_problem(said):
    return not isinstance(said, Note)


def as_python(answer):
    """Return arrays and numbers of NumPy and MXNet as Python's, in lists, too."""
    if isinstance(answer, (list, tuple)):
        if {*map(type, answer)} == {float}:
            return answer
        entries = [as_python(entry) for entry in answer]
        return entries if isinstance(answer, list) else tuple(entries)
    if isinstance(answer, dict):
        return {key: as_python(value) for key, value in answer.items()}
    if hasattr(answer, "asnumpy"):
        answer = answer.asnumpy()
    return answer.tolist() if hasattr(answer, "tolist") else answer


def _is_list(answer):
    return isinstance(answer, (list, tuple))


def _is_number(answer):
    return isinstance(answer, (Real, Decimal)) and not isinstance(answer, bool)


def _direction(answer, right):
    if _is_number(answer) and _is_number(right):
        if answer < right:
            return ", too small."
        return ", too large." if answer > right else "."  # NaN is neither
    if _is_list(answer) and _is_list(right) and len(answer) != len(right):
        what = "numbers" if all(map(_is_number, right)) else "entries"
        return f": {len(right)} {what} are needed."
    return "."
