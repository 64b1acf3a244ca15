"""`check`: is an answer to an exercise right?

    from exercisekit import check

    check("allreduce", 1, 14)

A typical wrong answer earns a hint, not the solution. Only exercises with a short
answer, or code, can be checked. A chapter's questions are `QUESTIONS` in the file of
its name, such as `data_parallel/allreduce`.
"""

import json
import os
import re
import textwrap
from importlib import import_module
from pathlib import Path
from pkgutil import iter_modules

from .question import says

#: The variable with the path of a file that gets a line of JSON per checked answer.
GRADES = "D2L_EXT_GRADES"


def check(chapter, exercise, answer):
    """Print whether `answer` is right, or a hint if it is not.

    `chapter`: the notebook's name without its suffix. `exercise`: a number from 1.
    `answer`: a number, `True` or `False`, a word, a list of numbers, or, if the
    exercise asks for code, a function, which is run. `None` means no answer yet.

    If the environment variable `D2L_EXT_GRADES` names a file, a line of JSON is added
    to it: chapter, exercise, `result` ("right", "not yet", "no answer yet") and the
    printed text. Raises `KeyError` for an exercise that cannot be checked.
    """
    asked = questions(chapter)
    if isinstance(exercise, str) and exercise.strip().isdigit():
        exercise = int(exercise)
    if (chapter, exercise) not in asked:
        known = [number for _, number in asked]
        raise KeyError(f"{chapter!r}, exercise {exercise}: only {known} can be checked")
    report(chapter, exercise, says(asked[chapter, exercise], answer))


def report(chapter, exercise, said):
    """Print the text `said` about an answer; add it to the grade book, if any."""
    tell(chapter, exercise, said)
    if os.environ.get(GRADES):
        result = re.match("[a-z ]+", said)[0]  # "right", "not yet", "no answer yet"
        line = {"chapter": chapter, "exercise": exercise, "result": result,
                "says": said}
        with Path(os.environ[GRADES]).open("a", encoding="utf-8") as book:
            book.write(json.dumps(line) + "\n")


def tell(chapter, exercise, said):
    """Print the text `said` about an answer."""
    kind = "Puzzle" if chapter == "puzzles" else "Exercise"
    print(textwrap.fill(f"{kind} {exercise}: {said}", 80, break_on_hyphens=False,
                        break_long_words=False))


def questions(chapter=None):
    """Return the questions of a chapter, or of all: {(chapter, number): `Question`}.

    Raises `KeyError` for a chapter without a file here.
    """
    files = _files()
    if chapter is not None and chapter not in files:
        raise KeyError(f"there is no chapter {chapter!r}; there are {', '.join(files)}")
    return {
        (name, number): question
        for name in ([chapter] if chapter else files)
        for number, question in import_module(files[name]).QUESTIONS.items()
    }


def _files():
    """Return {name of a chapter: name of its module}."""
    folder = Path(__file__).parent
    return {
        chapter.name: f"{__package__}.{part.name}.{chapter.name}"
        for part in iter_modules([str(folder)]) if part.ispkg
        for chapter in iter_modules([str(folder / part.name)])
    }
