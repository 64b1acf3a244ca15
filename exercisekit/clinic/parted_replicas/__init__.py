"""Exercises of the chapter *Replicas that part ways*: twelve cases without a label.

`program` is the training program, `cases` changes one line of it and keeps its log,
`tools` has the functions that it calls.
"""

from ...question import Question
from .cases import CASES, CAUSES, program_lines

#: What to say of a line that could cause the same log as the faulty one of a case.
ALSO = {
    (5, 5): "The cause is right. Line 5 could do it, with an epoch that stays 0, "
            + "but here the epoch grows. Which line uses it?",
}


def _question(number):
    """Ask for the cause and line of a case; half an answer earns a hint."""
    cause, line, _ = CASES[number]
    others = [n for n in range(len(program_lines()) + 1) if n != line]
    elsewhere = "The fault is in another line." if line else "Is any line wrong?"
    wrong = [((cause, n), ALSO.get((number, n), f"The cause is right. {elsewhere}"))
             for n in others]
    it_is = ("You have found the line. What does it do now?" if line
             else "Right, no line is wrong. What else changes a number?")
    wrong += [((name, line), it_is) for name in CAUSES if name != cause]
    return Question("a pair, the cause and the line", (cause, line),
                    wrong)


QUESTIONS = {number: _question(number) for number in CASES}
