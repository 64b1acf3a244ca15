"""A chapter that keeps every rule, and the ways to break it.

`good()` makes the chapter. `BROKEN` maps each rule to what it must find, with a
function that breaks the chapter so.
"""

from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook, new_output
from rules_form import SET_UP
from rules_learning import FOLDED

LAST_LINE = "style.use()"
RUN = (
    "Run on 2 November 2026 at commit abc1234, with MXNet 1.9.1 and Python 3.11.7, on "
    "an abacus with 2 cores and no GPU; OMP_NUM_THREADS=1."
)
OPENING = """# Title

**After this chapter you can** count to three.

**You need** [another](one.ipynb). The notebook runs in less than half a minute.

```python
## not a heading
```"""
SUMMARY = """## Summary

- One.
- Two.
- Three.

## Exercises"""
HINT = """

<details>
<summary>Hint</summary>

Count them.

</details>"""
EXERCISE = "### Exercise {number}\n\n*{level}.*\nHow many?" + HINT
#: Asserts what another time would be otherwise, by a function of its own.
TOGETHER = "def so(trace):\n    return trace.overlap() > 0\n\n\nassert so(trace)"
HALF = {"source_hidden": True}  # of what folds a cell in Jupyter
ORIGIN = ["remove-input", "nbval-ignore-output"]
#: Where in the chapter the summary and the exercises are, as numbers of cells.
IN_SUMMARY, FIRST, CHECK, SOLUTION, LAST = 8, 9, 10, 11, 16


def code(source, *outputs, tags=(), **metadata):
    if tags:
        metadata["tags"] = list(tags)
    return new_code_cell(source, outputs=list(outputs), metadata=metadata)


def text(printed):
    return new_output("stream", name="stdout", text=printed)


def origin(line):
    return new_output("execute_result", {"text/plain": line}, execution_count=1)


def image(kind="image/png"):
    return new_output("display_data", {kind: "L3RtcC8="})


def interactive():
    html = '<div class="d2l-figure"></div>'
    return new_output("display_data", {"text/html": html})


def good():
    figure = {
        "image": {"alt": "A line that rises."},
        "figure": {"caption": "A line.", "name": "fig-line"},
    }
    cells = [
        new_markdown_cell(OPENING),
        code(f"import d2l_ext\n{LAST_LINE}", tags=["hide-input"], mystnb=SET_UP),
        new_markdown_cell("## First\n\nAn **engine** makes it.\nPredict its shape."),
        code("X = np.ones(3)\nX.shape", text("(3,)"), tags=["claim-S4"]),
        code("plot(X)", image(), mystnb=figure),
        code("timer.stop()", text("0.2 sec"), tags=["nbval-ignore-output"]),
        new_markdown_cell("Predict the sum. **It is exact.**"),
        code("X.sum()", text("3")),
        new_markdown_cell(SUMMARY),
    ]
    for i, level in enumerate(("Warm-up", "Standard", "Deeper", "Deeper"), start=1):
        cells.append(new_markdown_cell(EXERCISE.format(number=i, level=level)))
        if i == 1:
            cells.append(code(f'check("example", {i}, None)', text("no answer yet")))
        cells.append(code("assert X.sum() == 3", tags=["hide-cell"], jupyter=FOLDED))
    cells.append(code("provenance()", origin(RUN), tags=ORIGIN))
    nb = new_notebook(cells=cells)
    number(nb)
    return nb


def number(nb, first=1):
    cells = [cell for cell in nb.cells if cell.cell_type == "code"]
    for i, cell in enumerate(cells, start=first):
        cell.execution_count = i


def output(printed, **more):
    """Breaks cell 3 with something else printed."""
    return lambda nb: nb.cells[3].update(outputs=[text(printed)], **more)


def source(new, i=3):
    return lambda nb: nb.cells[i].update(source=new)


def replace(old, new, i=IN_SUMMARY):
    def doctor(nb):
        assert old in nb.cells[i].source
        nb.cells[i].source = nb.cells[i].source.replace(old, new)

    return doctor


def tag(new, i=3):
    return lambda nb: nb.cells[i].metadata.setdefault("tags", []).append(new)


def untag(i):
    return lambda nb: nb.cells[i].metadata.pop("tags")


def mystnb(*keys):
    """Removes one entry from the figure's options."""

    def doctor(nb):
        options = nb.cells[4].metadata["mystnb"]
        for key in keys[:-1]:
            options = options[key]
        del options[keys[-1]]

    return doctor


def drop(*cells):
    def doctor(nb):
        for i in sorted(cells, reverse=True):
            del nb.cells[i]
        number(nb)

    return doctor


def add(cell):
    def doctor(nb):
        nb.cells.append(cell)
        number(nb)

    return doctor


def stderr(nb):
    nb.cells[3].outputs = [new_output("stream", name="stderr", text="warning")]


def error(nb):
    failed = new_output("error", ename="ValueError", evalue="no", traceback=[])
    nb.cells[3].outputs = [failed]


#: By rule: what is wrong, and what breaks the chapter so.
BROKEN = {
    "is_valid": {"an invalid cell": lambda nb: nb.cells[3].update(colour="red")},
    "was_executed_in_order": {
        "a count that is null": lambda nb: nb.cells[3].update(execution_count=None),
        "a count that is repeated": lambda nb: nb.cells[3].update(execution_count=1),
        "a run that began at 5": lambda nb: number(nb, first=5),
    },
    "stores_errors_only_where_expected": {
        "a stored error": error,
        "an expected error that is gone": tag("raises-exception"),
    },
    "stores_no_stderr": {"a warning on stderr": stderr},
    "is_small": {"a huge output": output("x" * 1_600_000)},
    "names_no_path_of_a_machine": {
        "a home folder in an output": output("read\n/home/ann/data.gz"),
        "a home folder as a URL": output("file:///home/ann/data"),
        "a temporary folder in the source": source("open('/tmp/data.gz')"),
        "a folder in the text":
            replace("its shape", "its shape\nin /Users/ann/book", i=2),
    },
    "has_known_tags": {
        "an unknown tag": tag("nbval-ignore-outptu"),
        "a skipped cell": tag("nbval-skip"),
    },
    "compares_no_times": {
        "a time from a timer": untag(5),
        "a time from a clock": source("print(time.perf_counter() - start)"),
        "a thing that was told": source("tell(what, so, go)"),
        "a time from a magic": source("%timeit X.sum()"),
        "a time from a function": output("acc 0.97, 0.4 sec/epoch"),
        "a speed-up": output("speed-up: 1.93"),
    },
    "imports_the_library_first": {
        "no import of the library": source(f"from mxnet import np\n{LAST_LINE}", i=1),
        "MXNet before the library":
            source(f"from mxnet import np\nimport d2l_ext\n{LAST_LINE}", i=1),
        "d2l before the library":
            source(f"from d2l import mxnet as d2l\nimport d2l_ext\n{LAST_LINE}", i=1),
        "the library in the second cell":
            lambda nb: (source(LAST_LINE, i=1)(nb), source("import d2l_ext")(nb)),
    },
    "leaves_devices_to_the_library": {
        "a second CPU": source("np.ones(3, ctx=mx.cpu(1))"),
        "a CPU by keyword": source("d = mx.cpu(device_id=1)"),
        "a GPU": source("devices = [npx.gpu(0)]"),
    },
    "says_where_its_numbers_come_from": {
        "no line of provenance": source("print(1)", i=-1),
        "numbers without a commit":
            lambda nb: nb.cells[-1].update(outputs=[origin(RUN.replace("commit", ""))]),
        "provenance with its code": lambda nb: nb.cells[-1].metadata.tags.pop(0),
    },
    "describes_its_images": {
        "an image without alt text": mystnb("image", "alt"),
        "an image without caption": mystnb("figure", "caption"),
        "an image without name": mystnb("figure", "name"),
        "an interactive figure without caption":
            lambda nb: nb.cells[3].outputs.append(interactive()),
        "a figure that was not stored": lambda nb: nb.cells[4].update(outputs=[]),
        "two images in a cell":
            lambda nb: nb.cells[4].outputs.append(image("image/svg+xml")),
    },
    "draws_in_the_books_style": {
        "figures in matplotlib's own style":
            source("import d2l_ext", i=1),
        "a figure with a frame of its own":
            source("ax.spines['top'].set_visible(False)"),
        "a legend with a style of its own": source("ax.legend(frameon=False)"),
    },
    "ends_with_summary_and_exercises": {
        "no exercises": replace("## Exercises", "## Tasks"),
        "a section after the exercises":
            lambda nb: nb.cells.insert(-1, new_markdown_cell("## Later")),
    },
    "has_solved_exercises": {
        "three exercises": drop(LAST, LAST + 1),
        "exercises that skip a number": replace("Exercise 4", "Exercise 7", i=LAST),
        "an exercise without solution": drop(SOLUTION),
        "an exercise whose solution is open": untag(SOLUTION),
        "an exercise whose solution asserts nothing": source("X.sum()", i=SOLUTION),
    },
    "asserts_nothing_of_one_moment": {
        "devices that must work together at once": source(TOGETHER),
    },
    "folds_its_set_up": {
        "imports that are open": lambda nb: nb.cells[1].metadata.pop("tags"),
        "a fold without a name": lambda nb: nb.cells[1].metadata.pop("mystnb"),
        "a set-up that prints": lambda nb: nb.cells[1].update(outputs=[text("1")]),
    },
    "shows_source_at_the_end_of_a_cell": {
        "source that is not displayed": source("show(f)\nX.sum()"),
    },
    "prints_figures_with_what_it_asserts": {
        "a statement without a figure": output("they are equal: True"),
        "nothing but a truth": output("it is 3\nTrue"),
    },
    "opens_with_what_it_gives_and_needs": {
        "no word on what it gives":
            replace("**After this chapter you can** count", "Learn to count", i=0),
        "no word on what it needs":
            replace("**You need** [another](one.ipynb). ", "", i=0),
        "no word on how long it runs":
            replace("in less than half a minute", "quickly", i=0),
    },
    "asks_to_predict": {
        "one prompt": replace("Predict", "Compute", i=2),
        "a prompt that nothing answers":
            lambda nb: nb.cells.insert(3, new_markdown_cell("It is (3,).")),
        "a prediction in the middle of a line": replace("Predict", "They predict", i=2),
    },
    "sums_up_in_points": {
        "a summary of two points": replace("- Three.\n", ""),
        "a summary in prose": replace("- ", ""),
    },
    "grades_its_exercises": {
        "an exercise without a level": replace("*Standard.*\n", "", i=SOLUTION + 1),
        "a level with a name of its own":
            replace("*Standard.*", "*Hard.*", i=SOLUTION + 1),
        "no exercise to warm up": replace("Warm-up", "Standard", i=FIRST),
    },
    "folds_a_hint_below_each_exercise": {
        "an exercise without a hint": replace(HINT, "", i=FIRST),
        "a hint that is open":
            replace("<details>\n<summary>Hint</summary>", "Hint:", i=FIRST),
        "a hint without an empty line, which would not be Markdown":
            replace("</summary>\n\n", "</summary>\n", i=FIRST),
    },
    "folds_what_it_hides_in_jupyter_too": {
        "a solution that Jupyter shows":
            lambda nb: nb.cells[SOLUTION].metadata.pop("jupyter"),
        "a solution whose output Jupyter shows":
            lambda nb: nb.cells[SOLUTION].metadata.update(jupyter=HALF),
    },
    "lets_the_reader_check_an_answer": {
        "no answer to check": drop(CHECK),
        "a check of another chapter's answer":
            source('check("devices", 1, None)', i=CHECK),
        "a check of another exercise": source('check("example", 2, None)', i=CHECK),
        "a check that shows the answer": source('check("example", 1, 3)', i=CHECK),
    },
    "explains_its_bold_terms": {
        "a term that the glossary lacks": replace("**engine**", "**carburettor**", i=2),
        "bold type to stress": replace("An", "**An**", i=2),
    },
}
