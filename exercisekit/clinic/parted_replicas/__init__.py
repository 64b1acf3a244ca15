"""Exercises of the chapter *Replicas that part ways*: twelve cases without a label.

`program` is what runs, `cases` changes one line of it and keeps the log, `tools` are
what the program calls.
"""

from ...question import Question
from .cases import CASES, CAUSES, program_lines


def _question(number):
    """The cause and the line; half of an answer is told as such."""
    cause, line, _ = CASES[number]
    others = [n for n in range(len(program_lines()) + 1) if n != line]
    wrong = [((cause, n), "The cause is right. It stands in another line.")
             for n in others]
    wrong += [((name, line), "The line is right. What does it do now?")
              for name in CAUSES if name != cause]
    return Question("a pair, the cause and the line", (cause, line),
                    wrong)


QUESTIONS = {number: _question(number) for number in CASES}
