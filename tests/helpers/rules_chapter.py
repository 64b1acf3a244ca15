"""Rules about how a chapter is made: imports, devices, images, exercises.

A rule takes a notebook and the name of its page, and gives messages, none when all is
well.
"""

import ast
import re

from notebook_cells import (
    asserts,
    called,
    code_cells,
    headings,
    label,
    printed,
    tags,
    tree,
)

#: The chapter that explains contexts may name them; the others ask the library.
NAMES_CONTEXTS = "chapters/devices/devices"
#: What `figures.style` sets for all.
STYLED = {"rcParams", "spines", "frameon", "tight_layout", "dpi"}
#: What a timeline measured, and another time would be otherwise.
MOMENTS = {"busy", "overlap", "span"}
#: Tags of the cell that calls `provenance()`, and what it must have stored.
ORIGIN = {"remove-input", "nbval-ignore-output"}
EXERCISE = re.compile(r"(?m)^### +(?:Exercise|Puzzle) (\d+)\b")
RUN = re.compile(
    r"Run on \d+ \w+ \d{4} at commit [\w.-]+, with MXNet [\d.]+ and Python [\d.]+, "
    r"on .+ with \d+ cores and \w+ GPUs?; "
)


def imports_the_library_first(nb, page):
    """`d2l_ext` sets what must be set before MXNet loads."""
    seen = [(i, m) for i, cell in enumerate(code_cells(nb)) for m in _imports(cell)]
    for cell, module in seen:
        if module == "d2l_ext" and cell == 0:
            return
        if module in ("mxnet", "d2l", "d2l_ext"):
            break
    yield "the first code cell must import d2l_ext, before mxnet and d2l"


def _imports(cell):
    nodes = [n for n in ast.walk(tree(cell)) if hasattr(n, "lineno")]
    for node in sorted(nodes, key=lambda n: (n.lineno, n.col_offset)):
        if isinstance(node, ast.ImportFrom):
            yield (node.module or "").split(".")[0]
        if isinstance(node, ast.Import):
            yield from (alias.name.split(".")[0] for alias in node.names)


def leaves_devices_to_the_library(nb, page):
    if page == NAMES_CONTEXTS:
        return []
    return [
        f"{label(cell)} names {ast.unparse(call)}: use d2l_ext.try_all_devices"
        for cell in code_cells(nb)
        for call in ast.walk(tree(cell))
        if isinstance(call, ast.Call) and _names_a_context(call)
    ]


def _names_a_context(call):
    name = getattr(call.func, "attr", getattr(call.func, "id", ""))
    given = call.args + [keyword.value for keyword in call.keywords]
    literal = any(isinstance(a, ast.Constant) and a.value != 0 for a in given)
    return name == "gpu" or (name == "cpu" and literal)


def says_where_its_numbers_come_from(nb, page):
    """In its last cell: the date, the commit, the versions, the machine."""
    last = nb.cells[-1]
    if last.source != "provenance()" or last.cell_type != "code":
        yield "the last cell must be provenance()"
        return
    if not {*tags(last)} >= ORIGIN:
        yield f"{label(last)} needs the tags {sorted(ORIGIN)}"
    if not RUN.search(printed(last)):
        yield f"{label(last)} does not say where and from what it was run"


def describes_its_images(nb, page):
    """An interactive figure says in words what it shows; it needs caption and name."""
    for cell in code_cells(nb):
        images = sum(_is_image(output) for output in cell.outputs)
        number = images + sum(_is_interactive(output) for output in cell.outputs)
        options = cell.metadata.get("mystnb", {})
        has = {
            "image alt": options.get("image", {}).get("alt"),
            "figure caption": options.get("figure", {}).get("caption"),
            "figure name": options.get("figure", {}).get("name"),
        }
        if not images:
            del has["image alt"]
        missing = [what for what, value in has.items() if not value]
        if number and missing:
            yield f"{label(cell)} has an image without mystnb {missing}"
        if number > 1:
            yield f"{label(cell)} has {number} images under one name"
        if not number and "figure" in options:
            yield f"{label(cell)} describes a figure, but stores no image"


def _is_image(output):
    return any(kind.startswith("image/") for kind in output.get("data", {}))


def _is_interactive(output):
    return 'class="d2l-figure"' in output.get("data", {}).get("text/html", "")


def draws_in_the_books_style(nb, page):
    """One style for all chapters, and nothing of it set again in a cell."""
    cells = code_cells(nb)
    drawn = any("image/png" in o.get("data", {}) for c in cells for o in c.outputs)
    for cell in cells:
        for name in sorted(STYLED & set(_names(cell))):
            yield f"{label(cell)} sets {name}: that is for bookkit.style"
    if drawn and "style.use()" not in cells[0].source:
        yield "figures are drawn: the first code cell must call style.use()"


def _names(cell):
    for node in ast.walk(tree(cell)):
        yield getattr(node, "attr", getattr(node, "arg", None))


def ends_with_summary_and_exercises(nb, page):
    last = headings(nb, level=2)[-2:]
    if last != ["Summary", "Exercises"]:
        yield f"the last two sections are {last}, not Summary and Exercises"


def has_solved_exercises(nb, page):
    """At least four, numbered, each with a folded cell that solves it.

    That is a cell that asserts an answer, or shows and tries the reference solution.
    """
    solved, current = {}, None
    for cell in nb.cells:
        if cell.cell_type == "markdown":
            for number in EXERCISE.findall(cell.source):
                current = int(number)
                solved[current] = False
        elif current and "hide-cell" in tags(cell):
            shown = "solution" in called(tree(cell))
            solved[current] = solved[current] or shown or asserts(cell)
    for n, done in solved.items():
        if not done:
            yield f"exercise {n} has no cell tagged hide-cell with its solution"
    if len(solved) < 4 or list(solved) != list(range(1, len(solved) + 1)):
        yield f"exercises are {list(solved)}: number at least four from 1"


def asserts_nothing_of_one_moment(nb, page):
    """Whether devices worked together hangs on the moment, so `tell` measures again.

    That they did *not* can be asserted: what must wait, waits at any moment.
    """
    moments = set(MOMENTS)
    for cell in code_cells(nb):
        for node in ast.walk(tree(cell)):
            if isinstance(node, ast.FunctionDef) and moments & {*called(node)}:
                moments.add(node.name)
            if isinstance(node, ast.Assign) and moments & {*called(node.value)}:
                moments |= {t.id for t in node.targets if isinstance(t, ast.Name)}
            if isinstance(node, ast.Assert) and moments & {*_affirmed(node.test)}:
                yield (
                    f"{label(cell)} asserts {ast.unparse(node.test)}, which hangs on "
                    "the moment: use bookkit.findings.tell"
                )


def _affirmed(node):
    """The names in an expression that do not stand behind a `not`."""
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
        return
    yield getattr(node, "attr", getattr(node, "id", ""))
    for child in ast.iter_child_nodes(node):
        yield from _affirmed(child)
