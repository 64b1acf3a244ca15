"""Questions that a page asks before it shows an output, which has the answer."""

import re
from pathlib import Path

import nbformat
import predict
import pytest
from nbformat.v4 import new_code_cell, new_output
from notebook_cells import chapters

ROOT = Path(__file__).parents[2]
PRINTED = "tree: 1,500.2 ms\nring:   300.5 ms\nfastest: ring\nsent 6\nsent 6\n"


def cell(printed=PRINTED, **asked):
    output = new_output("stream", name="stdout", text=printed)
    return new_code_cell(outputs=[output], metadata={
        "tags": ["predict"], "predict": {"ask": "Which?", **asked}})


@pytest.mark.parametrize("asked, answer, choices", [
    ({"find": r"sent (\d+)"}, "6", None),
    ({"find": r"tree: ([\d.,]+)"}, "1,500.2", None),
    ({"find": r"fastest: (\w+)", "choices": ["tree", "ring"]},
     "ring", ["tree", "ring"]),
    ({"find": r"fastest: (\w+)", "choices": {"tree": "no", "ring": "yes"}},
     "yes", ["no", "yes"]),
    ({"largest": r"^(\w+): +([\d.,]+)"}, "tree", ["tree", "ring"]),
    ({"smallest": r"^(\w+): +([\d.,]+)", "choices": ["ring", "tree"]},
     "ring", ["ring", "tree"]),
])
def test_the_answer_is_taken_out_of_the_stored_output(asked, answer, choices):
    found = predict.question(cell(**asked))
    assert (found["answer"], found.get("choices")) == (answer, choices)


@pytest.mark.parametrize("asked, said", [
    ({"find": r"received (\d+)"}, "nothing for find 'received"),
    ({"find": r"sent (\d+)", "printed": "sent 6\nsent 7\n"}, r"\['6', '7'\] for find"),
    ({"find": r"fastest: (\w+)"}, "'ring', no number"),
    ({"find": r"fastest: (\w+)", "choices": ["tree", "star"]}, r"\['ring'\] for find"),
    ({"find": r"fastest: (\w+)", "choices": ["ring"]}, "1 choices: 2 to 4 are due"),
    ({"largest": r"^(\w+): +([\d.,]+)", "choices": ["ring", "star"]},
     "nothing for largest"),
    ({"ask": "Guess"}, "lacks `ask`, a question"),
    ({}, "lacks `find`, `largest` or `smallest`"),
])
def test_without_one_answer_in_the_output_the_build_is_warned_and_names_the_cell(
    tmp_path, asked, said
):
    good, bad, path = cell(find=r"sent (\d+)"), cell(**asked), tmp_path / "ring.ipynb"
    nbformat.write(nbformat.v4.new_notebook(cells=[bad, good]), path)
    failed = []
    assert predict.questions(path, failed.append)[0] is None
    assert re.match(f"{path}, cell {bad.id}, tagged predict: .*{said}", failed[0])
    assert len(failed) == 1


@pytest.mark.parametrize("chapter", chapters())
def test_a_chapter_asks_at_most_four_questions_and_its_outputs_answer_them(chapter):
    assert len(predict.questions(ROOT / f"{chapter}.ipynb", pytest.fail)) <= 4


def test_the_script_is_small():
    assert (ROOT / "_sphinx/static/predict.js").stat().st_size <= 3 * 1024
