"""Tells a reader whether an answer to an exercise is right.

    from exercisekit import check

    check("allreduce", 1, 14)

A wrong answer that many would give is met with what it suggests, and not with the
solution. Each chapter asks for some of its exercises; the others have no short answer.
The answers of a part are in the file of its name.
"""

import json
import os
import re
import textwrap
from pathlib import Path

from . import (
    clusters,
    data_parallel,
    devices,
    kvstore,
    memory,
    meshes,
    pipeline,
    puzzles,
    scale,
    tensor_parallel,
)
from .question import says

#: Names a file to which every checked answer is added, as a line of JSON.
GRADES = "D2L_EXT_GRADES"
#: (chapter, number of the exercise): its `Question`.
QUESTIONS = {
    **devices.QUESTIONS,
    **data_parallel.QUESTIONS,
    **memory.QUESTIONS,
    **tensor_parallel.QUESTIONS,
    **pipeline.QUESTIONS,
    **meshes.QUESTIONS,
    **kvstore.QUESTIONS,
    **clusters.QUESTIONS,
    **scale.QUESTIONS,
    **puzzles.QUESTIONS,
}


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
    if (chapter, exercise) not in QUESTIONS:
        known = [number for name, number in QUESTIONS if name == chapter]
        raise KeyError(f"{chapter!r}, exercise {exercise}: only {known} can be checked")
    said = says(QUESTIONS[chapter, exercise], answer)
    if os.environ.get(GRADES):
        result = re.match("[a-z ]+", said)[0]  # "right", "not yet", "no answer yet"
        line = {"chapter": chapter, "exercise": exercise, "result": result,
                "says": said}  # fmt: skip
        with Path(os.environ[GRADES]).open("a", encoding="utf-8") as book:
            book.write(json.dumps(line) + "\n")
    kind = "Puzzle" if chapter == "puzzles" else "Exercise"
    print(textwrap.fill(f"{kind} {exercise}: {said}", 80, break_on_hyphens=False,
                        break_long_words=False))  # fmt: skip
