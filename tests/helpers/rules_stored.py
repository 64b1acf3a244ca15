"""Rules about what a notebook stores: counts, outputs, tags, size.

A rule takes a notebook and the name of its page, and gives messages, none when all is
well.
"""

import ast
import json
import re

import nbformat
from notebook_cells import called, code_cells, label, printed, tags, tree

MAX_BYTES = 1_500_000
#: Tags with a meaning for nbval, Jupyter Book or the pages. Not here: nbval-skip
#: and remove-cell, which would hide what a chapter does.
KNOWN_TAGS = {
    "hide-cell",
    "hide-input",
    "hide-output",
    "lab",
    "nbval-ignore-output",
    "predict",
    "raises-exception",
    "remove-input",
}
CLAIM_TAG = re.compile(r"claim-\w+")
MACHINE_PATH = re.compile(r"(?<![\w.-])/(?:home|root|tmp|work|Users)/")
CLOCKS = {
    "Benchmark",
    "Timer",
    "monotonic",
    "perf_counter",
    "perf_counter_ns",
    "process_time",
    "stop",
    "tell",
    "time",
    "timeit",
}
MEASURED = re.compile(r"\d\s*(?:ns|µs|us|ms|s|sec|seconds?|min)\b|\bspeed-?up\b")


def is_valid(nb, page):
    try:
        nbformat.validate(nb)
    except nbformat.ValidationError as error:
        yield f"not a valid notebook: {error.message}"


def was_executed_in_order(nb, page):
    """nbval never compares a cell whose execution count is null."""
    counts = [cell.get("execution_count") for cell in code_cells(nb)]
    if counts != list(range(1, len(counts) + 1)):
        yield f"execution counts are {counts}: run the notebook from top to bottom"


def stores_errors_only_where_expected(nb, page):
    for cell in code_cells(nb):
        failed = any(o.output_type == "error" for o in cell.outputs)
        if failed != ("raises-exception" in tags(cell)):
            what = "stores an error without" if failed else "stores no error, despite"
            yield f"{label(cell)} {what} the tag raises-exception"


def stores_no_stderr(nb, page):
    return [
        f"{label(cell)} stores text from stderr: {output.text[:60]!r}"
        for cell in code_cells(nb)
        for output in cell.outputs
        if output.get("name") == "stderr"
    ]


def is_small(nb, page):
    size = len(nbformat.writes(nb).encode())
    return [f"{size} bytes, more than {MAX_BYTES}"] if size > MAX_BYTES else []


def names_no_path_of_a_machine(nb, page):
    return [
        f"{label(cell)} holds a path of one machine: {text!r}"
        for cell in nb.cells
        for text in _lines(cell)
        if MACHINE_PATH.search(text)
    ]


def _lines(cell):
    """Every line of a cell, but for encoded images, whose letters are no words."""
    bare = json.loads(json.dumps(cell))
    for output in bare.get("outputs", []):
        for kind in ("image/png", "image/jpeg"):
            output.get("data", {}).pop(kind, None)
    return re.split(r"\\n|\\t|\n", json.dumps(bare, indent=0, ensure_ascii=False))


def has_known_tags(nb, page):
    return [
        f"{label(cell)} has the tag {tag!r}, which is not one of {sorted(KNOWN_TAGS)}"
        for cell in nb.cells
        for tag in tags(cell)
        if tag not in KNOWN_TAGS and not CLAIM_TAG.fullmatch(tag)
    ]


def compares_no_times(nb, page):
    """A time changes from run to run, so its cell's output is not compared."""
    return [
        f"{label(cell)} prints a time and needs the tag nbval-ignore-output"
        for cell in code_cells(nb)
        if "nbval-ignore-output" not in tags(cell)
        and printed(cell)
        and (_reads_a_clock(cell) or MEASURED.search(printed(cell)))
    ]


def _reads_a_clock(cell):
    root = tree(cell)
    magics = [
        call.args[0].value
        for call in ast.walk(root)
        if isinstance(call, ast.Call)
        and getattr(call.func, "attr", "") in ("run_line_magic", "run_cell_magic")
    ]
    return CLOCKS & {*called(root), *magics}
