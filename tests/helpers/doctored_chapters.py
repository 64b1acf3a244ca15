"""A chapter that keeps every rule, and the ways to break it.

`good()` makes the chapter. `DOCTORS` maps what is wrong to the rule that must
find it and a function that breaks the chapter so.
"""

from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook, new_output
from rules_chapter import FACTS
from rules_learning import FOLDED

LAST_LINES = "style.use()\nprovenance()"
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
EXERCISE = """### Exercise {number}

*{level}.*
How many?

<details>
<summary>Hint</summary>

Count them.

</details>"""
#: Where in the chapter the summary and the exercises are, as numbers of cells.
IN_SUMMARY, FIRST, CHECK, SOLUTION, LAST = 8, 9, 10, 11, 16


def code(source, *outputs, tags=(), **metadata):
    if tags:
        metadata["tags"] = list(tags)
    return new_code_cell(source, outputs=list(outputs), metadata=metadata)


def text(printed):
    return new_output("stream", name="stdout", text=printed)


def origin(*facts):
    text = str(dict.fromkeys(facts, "…"))
    return new_output("execute_result", {"text/plain": text}, execution_count=1)


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
        code(f"import d2l_ext\n{LAST_LINES}", origin(*FACTS)),
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
    nb = new_notebook(cells=cells)
    number(nb)
    return nb


def number(nb):
    cells = [cell for cell in nb.cells if cell.cell_type == "code"]
    for i, cell in enumerate(cells):
        cell.execution_count = i + 1


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


DOCTORS = {
    "an invalid cell": ("is_valid", lambda nb: nb.cells[3].update(colour="red")),
    "a count that is null": (
        "was_executed_in_order",
        lambda nb: nb.cells[3].update(execution_count=None),
    ),
    "a count that is repeated": (
        "was_executed_in_order",
        lambda nb: nb.cells[3].update(execution_count=1),
    ),
    "a run that began at 5": (
        "was_executed_in_order",
        lambda nb: [
            c.update(execution_count=c.execution_count + 4)
            for c in nb.cells
            if c.cell_type == "code"
        ],
    ),
    "a stored error": ("stores_errors_only_where_expected", error),
    "an expected error that is gone": (
        "stores_errors_only_where_expected",
        tag("raises-exception"),
    ),
    "a warning on stderr": ("stores_no_stderr", stderr),
    "a huge output": ("is_small", output("x" * 1_600_000)),
    "a home folder in an output": (
        "names_no_path_of_a_machine",
        output("read\n/home/ann/data.gz"),
    ),
    "a home folder as a URL": (
        "names_no_path_of_a_machine",
        output("file:///home/ann/data"),
    ),
    "a temporary folder in the source": (
        "names_no_path_of_a_machine",
        source("open('/tmp/data.gz')"),
    ),
    "a folder in the text": (
        "names_no_path_of_a_machine",
        replace("its shape", "its shape\nin /Users/ann/book", i=2),
    ),
    "an unknown tag": ("has_known_tags", tag("nbval-ignore-outptu")),
    "a skipped cell": ("has_known_tags", tag("nbval-skip")),
    "a time from a timer": ("compares_no_times", untag(5)),
    "a time from a clock": (
        "compares_no_times",
        source("print(time.perf_counter() - start)"),
    ),
    "a thing that was told": ("compares_no_times", source("tell(what, so, go)")),
    "a time from a magic": ("compares_no_times", source("%timeit X.sum()")),
    "a time from a function": ("compares_no_times", output("acc 0.97, 0.4 sec/epoch")),
    "a speed-up": ("compares_no_times", output("speed-up: 1.93")),
    "no import of the library": (
        "imports_the_library_first",
        source(f"from mxnet import np\n{LAST_LINES}", i=1),
    ),
    "MXNet before the library": (
        "imports_the_library_first",
        source(f"from mxnet import np\nimport d2l_ext\n{LAST_LINES}", i=1),
    ),
    "d2l before the library": (
        "imports_the_library_first",
        source(f"from d2l import mxnet as d2l\nimport d2l_ext\n{LAST_LINES}", i=1),
    ),
    "the library in the second cell": (
        "imports_the_library_first",
        lambda nb: (source(LAST_LINES, i=1)(nb), source("import d2l_ext")(nb)),
    ),
    "a second CPU": (
        "leaves_devices_to_the_library",
        source("np.ones(3, ctx=mx.cpu(1))"),
    ),
    "a CPU by keyword": (
        "leaves_devices_to_the_library",
        source("d = mx.cpu(device_id=1)"),
    ),
    "a GPU": ("leaves_devices_to_the_library", source("devices = [npx.gpu(0)]")),
    "no line of provenance": (
        "says_where_its_numbers_come_from",
        source("import d2l_ext\nstyle.use()", i=1),
    ),
    "numbers without a commit": (
        "says_where_its_numbers_come_from",
        lambda nb: nb.cells[1].update(outputs=[origin("date", *FACTS[2:])]),
    ),
    "an image without alt text": ("describes_its_images", mystnb("image", "alt")),
    "an image without caption": ("describes_its_images", mystnb("figure", "caption")),
    "an image without name": ("describes_its_images", mystnb("figure", "name")),
    "an interactive figure without caption": (
        "describes_its_images",
        lambda nb: nb.cells[3].outputs.append(interactive()),
    ),
    "a figure that was not stored": (
        "describes_its_images",
        lambda nb: nb.cells[4].update(outputs=[]),
    ),
    "two images in a cell": (
        "describes_its_images",
        lambda nb: nb.cells[4].outputs.append(image("image/svg+xml")),
    ),
    "figures in matplotlib's own style": (
        "draws_in_the_books_style",
        source("import d2l_ext\nprovenance()", i=1),
    ),
    "a figure with a frame of its own": (
        "draws_in_the_books_style",
        source("ax.spines['top'].set_visible(False)"),
    ),
    "a legend with a style of its own": (
        "draws_in_the_books_style",
        source("ax.legend(frameon=False)"),
    ),
    "no exercises": (
        "ends_with_summary_and_exercises",
        replace("## Exercises", "## Tasks"),
    ),
    "a section after the exercises": (
        "ends_with_summary_and_exercises",
        add(new_markdown_cell("## Later")),
    ),
    "three exercises": ("has_solved_exercises", drop(LAST, LAST + 1)),
    "exercises that skip a number": (
        "has_solved_exercises",
        replace("Exercise 4", "Exercise 7", i=LAST),
    ),
    "an exercise without solution": ("has_solved_exercises", drop(SOLUTION)),
    "an exercise whose solution is open": ("has_solved_exercises", untag(SOLUTION)),
    "an exercise whose solution asserts nothing": (
        "has_solved_exercises",
        source("X.sum()", i=SOLUTION),
    ),
    "devices that must work together at once": (
        "asserts_nothing_of_one_moment",
        source("def so(trace):\n    return trace.overlap() > 0\n\n\nassert so(trace)"),
    ),
    "no word on what it gives": (
        "opens_with_what_it_gives_and_needs",
        replace("**After this chapter you can** count", "Learn to count", i=0),
    ),
    "no word on what it needs": (
        "opens_with_what_it_gives_and_needs",
        replace("**You need** [another](one.ipynb). ", "", i=0),
    ),
    "no word on how long it runs": (
        "opens_with_what_it_gives_and_needs",
        replace("in less than half a minute", "quickly", i=0),
    ),
    "one prompt": ("asks_to_predict", replace("Predict", "Compute", i=2)),
    "a prompt that nothing answers": (
        "asks_to_predict",
        lambda nb: nb.cells.insert(3, new_markdown_cell("It is (3,).")),
    ),
    "a prediction in the middle of a line": (
        "asks_to_predict",
        replace("Predict", "They predict", i=2),
    ),
    "a summary of two points": ("sums_up_in_points", replace("- Three.\n", "")),
    "a summary in prose": ("sums_up_in_points", replace("- ", "")),
    "an exercise without a level": (
        "grades_its_exercises",
        replace("*Standard.*\n", "", i=SOLUTION + 1),
    ),
    "a level with a name of its own": (
        "grades_its_exercises",
        replace("*Standard.*", "*Hard.*", i=SOLUTION + 1),
    ),
    "no exercise to warm up": (
        "grades_its_exercises",
        replace("Warm-up", "Standard", i=FIRST),
    ),
    "an exercise without a hint": (
        "folds_a_hint_below_each_exercise",
        replace(
            "\n\n<details>\n<summary>Hint</summary>\n\nCount them.\n\n</details>",
            "",
            i=FIRST,
        ),
    ),
    "a hint that is open": (
        "folds_a_hint_below_each_exercise",
        replace("<details>\n<summary>Hint</summary>", "Hint:", i=FIRST),
    ),
    "a hint without an empty line, which would not be Markdown": (
        "folds_a_hint_below_each_exercise",
        replace("</summary>\n\n", "</summary>\n", i=FIRST),
    ),
    "a solution that Jupyter shows": (
        "folds_what_it_hides_in_jupyter_too",
        lambda nb: nb.cells[SOLUTION].metadata.pop("jupyter"),
    ),
    "a solution whose output Jupyter shows": (
        "folds_what_it_hides_in_jupyter_too",
        lambda nb: nb.cells[SOLUTION].metadata.update(jupyter={"source_hidden": True}),
    ),
    "no answer to check": ("lets_the_reader_check_an_answer", drop(CHECK)),
    "a check of another chapter's answer": (
        "lets_the_reader_check_an_answer",
        source('check("devices", 1, None)', i=CHECK),
    ),
    "a check of another exercise": (
        "lets_the_reader_check_an_answer",
        source('check("example", 2, None)', i=CHECK),
    ),
    "a check that shows the answer": (
        "lets_the_reader_check_an_answer",
        source('check("example", 1, 3)', i=CHECK),
    ),
    "a term that the glossary lacks": (
        "explains_its_bold_terms",
        replace("**engine**", "**carburettor**", i=2),
    ),
    "bold type to stress": ("explains_its_bold_terms", replace("An", "**An**", i=2)),
}
