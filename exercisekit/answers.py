"""Tells a reader whether an answer to an exercise is right.

    from exercisekit import check

    check("allreduce", 1, 14)

A wrong answer that many would give is met with what it suggests, and not with the
solution. Each chapter asks for some of its exercises; the others have no short answer.
What a chapter asks is `QUESTIONS` in the file of its name: `data_parallel/allreduce`.
"""

import json
import os
import re
import textwrap
from importlib import import_module
from pathlib import Path
from pkgutil import iter_modules

from .question import says

#: Names a file to which every checked answer is added, as a line of JSON.
GRADES = "D2L_EXT_GRADES"


def check(chapter, exercise, answer):
    """Print whether `answer` is right, or what it suggests if it is not.

    `chapter` is the notebook's name without its ending, `exercise` a number from 1,
    `answer` a number, a yes or no (`True`, `False`), a word, a list of numbers, or,
    where code is asked for, a function, which is tried.
    `None` stands for no answer yet.
    Where the environment variable `D2L_EXT_GRADES` names a file, a line of JSON is
    added there: chapter, exercise, `result` ("right", "not yet", "no answer yet") and
    what was said.
    Raises `KeyError` for an exercise that has no short answer.
    """
    asked = questions(chapter)
    if isinstance(exercise, str) and exercise.strip().isdigit():
        exercise = int(exercise)
    if (chapter, exercise) not in asked:
        known = [number for _, number in asked]
        raise KeyError(f"{chapter!r}, exercise {exercise}: only {known} can be checked")
    report(chapter, exercise, says(asked[chapter, exercise], answer))


def report(chapter, exercise, said):
    """Print what is `said` of an answer; add it to the grade book, if there is one."""
    if os.environ.get(GRADES):
        result = re.match("[a-z ]+", said)[0]  # "right", "not yet", "no answer yet"
        line = {"chapter": chapter, "exercise": exercise, "result": result,
                "says": said}
        with Path(os.environ[GRADES]).open("a", encoding="utf-8") as book:
            book.write(json.dumps(line) + "\n")
    kind = "Puzzle" if chapter == "puzzles" else "Exercise"
    print(textwrap.fill(f"{kind} {exercise}: {said}", 80, break_on_hyphens=False,
                        break_long_words=False))


def questions(chapter=None):
    """What is asked in the chapter, or in all: {(chapter, number): its `Question`}.

    Raises `KeyError` for a chapter that has no file here.
    """
    files = _files()
    if chapter is not None and chapter not in files:
        raise KeyError(f"{chapter!r}: no such chapter; there are {', '.join(files)}")
    return {
        (name, number): question
        for name in ([chapter] if chapter else files)
        for number, question in import_module(files[name]).QUESTIONS.items()
    }


def _files():
    """The modules of the chapters by their names: files in folders of the parts."""
    folder = Path(__file__).parent
    return {
        chapter.name: f"{__package__}.{part.name}.{chapter.name}"
        for part in iter_modules([str(folder)]) if part.ispkg
        for chapter in iter_modules([str(folder / part.name)])
    }
