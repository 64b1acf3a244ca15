"""A puzzle: a task whose result is checked and whose cost is counted."""

from dataclasses import dataclass

from ...question import Note, Task


@dataclass(frozen=True)
class Puzzle(Task):
    """A task that counts in `unit`s, with a `target` and the `best` known count.

    `first`: the count of the obvious first attempt, the first of `wrong`. A count below
    `least` is impossible: such code reads data that it never received.
    """

    title: str = ""
    unit: str = ""
    first: int = 0
    target: int = 0
    best: int = 0
    least: int = 0

    @classmethod
    def of(cls, title, asked, right, measure, counts, wrong):
        """`measure`: a function that runs the learner's function and yields its faults,
        or the count. `counts`: the unit, and the counts of the first attempt, the
        target, the best known solution and the least possible one.
        """
        unit, _, target, best, least = counts
        asked = f"{asked}. {unit}: at most {target}; the best known is {best}"

        def judge(function):
            for found in measure(function):
                if isinstance(found, str):
                    yield found
                elif found < least:
                    yield (f"{unit}: {found}, and {least} is the least possible: "
                           "does it do something that is not counted?")
                elif found > target:
                    yield f"Right so far. {unit}: {found}; the target is {target}."
                else:
                    yield Note(f"{unit}: {found}; the target was {target}, "
                               f"the best known is {best}.")

        return cls(asked, right, wrong, 0.0, judge, title, *counts)
