"""A chapter that keeps every rule, and the ways to break it.

`good()` makes the chapter. `DOCTORS` maps what is wrong to the rule that must
find it and a function that breaks the chapter so.
"""

from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook, new_output


def code(source, *outputs, tags=(), **metadata):
    if tags:
        metadata["tags"] = list(tags)
    return new_code_cell(source, outputs=list(outputs), metadata=metadata)


def text(printed):
    return new_output("stream", name="stdout", text=printed)


def image(kind="image/png"):
    return new_output("display_data", {kind: "L3RtcC8="})


def good():
    figure = {
        "image": {"alt": "A line that rises."},
        "figure": {"caption": "A line.", "name": "fig-line"},
    }
    cells = [
        new_markdown_cell("# Title\n\n```python\n## not a heading\n```"),
        code("import d2l_ext\nfrom mxnet import np"),
        new_markdown_cell("## First"),
        code("X = np.ones(3)\nX.shape", text("(3,)"), tags=["claim-S4"]),
        code("plot(X)", image(), mystnb=figure),
        code("timer.stop()", text("0.2 sec"), tags=["nbval-ignore-output"]),
        new_markdown_cell("## Summary\n\n## Exercises"),
    ]
    for i in range(1, 5):
        cells += [
            new_markdown_cell(f"### Exercise {i}\n\nHow many?"),
            code("assert X.sum() == 3", tags=["hide-cell"]),
        ]
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
        source("## In /Users/ann/book", i=2),
    ),
    "an unknown tag": ("has_known_tags", tag("nbval-ignore-outptu")),
    "a skipped cell": ("has_known_tags", tag("nbval-skip")),
    "a time from a timer": ("compares_no_times", untag(5)),
    "a time from a clock": (
        "compares_no_times",
        source("print(time.perf_counter() - start)"),
    ),
    "a time from a magic": ("compares_no_times", source("%timeit X.sum()")),
    "a time from a function": ("compares_no_times", output("acc 0.97, 0.4 sec/epoch")),
    "a speed-up": ("compares_no_times", output("speed-up: 1.93")),
    "no import of the library": ("imports_the_library_first", drop(1)),
    "MXNet before the library": (
        "imports_the_library_first",
        source("from mxnet import np\nimport d2l_ext", i=1),
    ),
    "d2l before the library": (
        "imports_the_library_first",
        source("from d2l import mxnet as d2l\nimport d2l_ext", i=1),
    ),
    "the library in the second cell": (
        "imports_the_library_first",
        lambda nb: (source("a = 1", i=1)(nb), source("import d2l_ext")(nb)),
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
    "an image without alt text": ("describes_its_images", mystnb("image", "alt")),
    "an image without caption": ("describes_its_images", mystnb("figure", "caption")),
    "an image without name": ("describes_its_images", mystnb("figure", "name")),
    "a figure that was not stored": (
        "describes_its_images",
        lambda nb: nb.cells[4].update(outputs=[]),
    ),
    "two images in a cell": (
        "describes_its_images",
        lambda nb: nb.cells[4].outputs.append(image("image/svg+xml")),
    ),
    "no summary": ("ends_with_summary_and_exercises", source("## Exercises", i=6)),
    "a section after the exercises": (
        "ends_with_summary_and_exercises",
        add(new_markdown_cell("## Later")),
    ),
    "three exercises": ("has_solved_exercises", drop(13, 14)),
    "exercises that skip a number": (
        "has_solved_exercises",
        source("### Exercise 7", i=13),
    ),
    "an exercise without solution": ("has_solved_exercises", drop(10)),
    "an exercise whose solution is open": ("has_solved_exercises", untag(10)),
    "an exercise whose solution asserts nothing": (
        "has_solved_exercises",
        source("X.sum()", i=10),
    ),
}
