"""Rules about how a chapter teaches: its opening, prompts, summary, exercises, terms.

A rule takes a notebook and the name of its page, and gives messages, none when all is
well.
"""

import re

from glossary import defines, is_sentence
from notebook_cells import called, label, markdown, tags, tree

#: How hard an exercise is, in the words of the introduction.
LEVELS = ("Warm-up", "Standard", "Deeper")
LEVEL = re.compile(rf"\*({'|'.join(LEVELS)})\.\*\n")
HINT = re.compile(
    r"<details>\n<summary>Hint</summary>\n\n(.+?)\n\n</details>", re.DOTALL
)
EXERCISE = re.compile(r"(?m)^### +(?:Exercise|Puzzle) (\d+)(?:: .+)?\n+")
HOW_LONG = re.compile(r"\bin less than (?:a |half )?[a-z]+(?: [a-z]+)?\b")
BOLD = re.compile(r"\*\*(.+?)\*\*", re.DOTALL)
FOLDED = {"outputs_hidden": True, "source_hidden": True}
#: What every chapter opens with.
OPENING = ("After this chapter you can", "You need")


def opens_with_what_it_gives_and_needs(nb, page):
    """And how long it runs, in words that tests/book/test_durations.py compares."""
    text = nb.cells[0].source if nb.cells else ""
    for words in OPENING:
        if not re.search(rf"(?m)^\*\*{words}\*\* \S", text):
            yield f"the first cell has no line that begins with **{words}**"
    if not HOW_LONG.search(text):
        yield 'the first cell does not say "runs in less than …"'


def asks_to_predict(nb, page):
    """At least twice, each time before a cell that gives the answer."""
    body = nb.cells[: _begin_of_exercises(nb)]
    prompts = [
        cell
        for cell, following in zip(body, body[1:])
        if cell.cell_type == "markdown"
        and following.cell_type == "code"
        and re.search(r"(?m)^Predict\b", cell.source)
    ]
    if len(prompts) < 2:
        yield f"{len(prompts)} lines before a code cell begin with Predict: two are due"


def sums_up_in_points(nb, page):
    summary = re.search(r"(?ms)^## Summary\n(.*?)(?=^## |\Z)", markdown(nb))
    points = re.findall(r"(?m)^- ", summary.group(1)) if summary else []
    return [] if len(points) >= 3 else [f"the summary has {len(points)} points"]


def grades_its_exercises(nb, page):
    """Each exercise has a level; a chapter has exercises of all three."""
    found = {n: LEVEL.match(text) for n, text in _exercises(nb).items()}
    problems = [f"exercise {n} has no level" for n, level in found.items() if not level]
    missing = {*LEVELS} - {level.group(1) for level in found.values() if level}
    if missing and not problems:
        problems.append(f"no exercise is of the level {sorted(missing)}")
    return problems


def folds_a_hint_below_each_exercise(nb, page):
    return [
        f"exercise {n} does not end with a hint in <details>"
        for n, text in _exercises(nb).items()
        if not text.rstrip().endswith("</details>") or not HINT.search(text)
    ]


def folds_what_it_hides_in_jupyter_too(nb, page):
    """The tag folds a cell on the page; Jupyter has settings of its own."""
    return [
        f"{label(cell)} is tagged hide-cell, but has no metadata jupyter {FOLDED}"
        for cell in nb.cells
        if "hide-cell" in tags(cell) and cell.metadata.get("jupyter") != FOLDED
    ]


def lets_the_reader_check_an_answer(nb, page):
    """With the name of its page, below the exercise and above its solution."""
    checks, current = 0, None
    name = page.split("/")[-1]
    for cell in nb.cells:
        if cell.cell_type == "markdown":
            numbers = EXERCISE.findall(cell.source)
            current = int(numbers[-1]) if numbers else None
        elif (
            current and "check" in called(tree(cell)) and "hide-cell" not in tags(cell)
        ):
            checks += 1
            if not re.search(rf'\bcheck\("{name}", {current}, None\)', cell.source):
                yield f"{label(cell)} does not check exercise {current}"
        else:
            current = None
    if not checks:
        yield "no exercise has a cell that checks an answer"


def explains_its_bold_terms(nb, page):
    """Bold is for terms, which the glossary has, and for whole sentences."""
    return [
        f"**{term}** is neither a sentence nor in the glossary: use *…* to stress"
        for cell in nb.cells
        if cell.cell_type == "markdown"
        for term in BOLD.findall(cell.source)
        if term not in OPENING and not is_sentence(term) and not defines(term)
    ]


def _begin_of_exercises(nb):
    for i, cell in enumerate(nb.cells):
        if cell.cell_type == "markdown" and EXERCISE.search(cell.source):
            return i
    return len(nb.cells)


def _exercises(nb):
    """The text of each exercise, by its number."""
    found = {}
    for cell in nb.cells:
        if cell.cell_type == "markdown":
            parts = EXERCISE.split(cell.source)
            found.update(zip(map(int, parts[1::2]), parts[2::2]))
    return found
