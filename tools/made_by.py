"""The origin of the stored outputs of a chapter: its metadata `made_by`.

`code`: digests of its own cells, and of the functions of the library that they call, by
module. If today's differ, the outputs are *stale*: `make rerun STALE=1`.
`outputs`: digests by cell id. If one differs, somebody *edited* the outputs.
`seconds`, `cores`, `date`: how long the chapter ran, on how many cores, and when.
"""

import ast
import io
import json
import keyword
import os
import re
import tokenize
from datetime import datetime, timezone
from pathlib import Path

from IPython.core.inputtransformer2 import TransformerManager

from bookkit.functions import Form, Library, digest, imports
from packages import SOURCES

#: What a chapter's own cells are called among the modules.
CELLS = "the chapter"
#: What a check of an answer prints is compared by nbval; a figure's origin says what
#: each machine says.
LEFT_OUT = {"exercisekit", "bookkit.provenance"}
#: A listing of the library, as `bookkit.show` makes it.
LISTING = re.compile(
    r"<summary>(?:Library source|Solution): .*?```python\n(.*)\n```", re.DOTALL
)


def library(root):
    """Return the code whose functions chapters are bound to."""
    return Library(root, [name for name in SOURCES if name not in LEFT_OUT])


def bind(nb, library, seconds):
    """Write the origin of its outputs into `nb`, executed and normalised."""
    nb.metadata["made_by"] = {
        "code": code(nb, library),
        "cores": len(os.sched_getaffinity(0)),
        "date": datetime.now(timezone.utc).date().isoformat(),
        "outputs": outputs(nb),
        "seconds": round(seconds, 1),
    }
    return nb


def code(nb, library):
    """Return a digest of `nb`'s cells, and of each library module they call."""
    trees, names = [], {}
    for cell in _code_cells(nb):
        trees.append(tree(cell))
        names.update(imports(trees[-1]))
    own = [Form([tree], names, library).text(library.own_digest) for tree in trees]
    called = library.reached(trees).items()
    return {CELLS: digest("\n".join(own)),
            **{module: made for module, made in called if module not in LEFT_OUT}}


def tree(cell):
    """Return the cell's syntax tree; magics become calls of `get_ipython()`."""
    return ast.parse(TransformerManager().transform_cell("".join(cell["source"])))


def outputs(nb):
    """Return a digest of the outputs of each code cell of `nb`, by the cell's id."""
    return {cell["id"]: digest(_written(cell["outputs"])) for cell in _code_cells(nb)}


def edited(nb):
    """Return the code cells of `nb` with outputs that are not the run's, in words."""
    made = nb["metadata"].get("made_by", {}).get("outputs", {})
    now = outputs(nb)
    return [f"cell [{cell['execution_count']}] {''.join(cell['source'])[:60]!r}"
            for cell in _code_cells(nb) if made.get(cell["id"]) != now[cell["id"]]
            ]


def stale(root, paths):
    """Return pages with outputs of older code: {path: the changed modules}."""
    ours, found = library(root), {}
    for path in paths:
        nb = json.loads((Path(root) / path).read_text("utf-8"))
        made, now = nb["metadata"].get("made_by", {}).get("code", {}), code(nb, ours)
        # A module that is called no more: then what called it has changed.
        names = sorted(name for name in now if made.get(name) != now[name])
        if names:  # what a cell calls is part of the cell
            found[path] = [name for name in names if name != CELLS] or names
    return found


def report(found):
    """Return lines that count the stale chapters, and name each with its changes."""
    several = "s" if len(found) > 1 else ""
    lines = [f"stale: {len(found)} chapter{several} (make rerun STALE=1)"]
    return "\n".join([*lines, *(f"  {path}: {', '.join(names)} changed"
                                for path, names in found.items())])


def durations(root):
    """Return how long chapters ran: {page: {"seconds", "cores", "date"}}."""
    found = {}
    for path in sorted(Path(root).glob("chapters/**/*.ipynb")):
        made = json.loads(path.read_text("utf-8"))["metadata"].get("made_by", {})
        if "seconds" in made:
            page = path.relative_to(root).with_suffix("").as_posix()
            found[page] = {name: made[name] for name in ("seconds", "cores", "date")}
    return found


def _code_cells(nb):
    return [cell for cell in nb["cells"] if cell["cell_type"] == "code"]


def _written(stored):
    """Return the outputs as one string, however their lines are stored."""
    def joined(value):
        if isinstance(value, list) and all(isinstance(each, str) for each in value):
            value = "".join(value)
        if isinstance(value, dict):
            return {name: joined(each) for name, each in value.items()}
        if isinstance(value, list):
            return [joined(each) for each in value]
        return _without_names(value) if isinstance(value, str) else value

    return json.dumps(joined(stored), sort_keys=True, ensure_ascii=False)


def _without_names(text):
    """Return a listing in which a number stands for each name; another text as it is.

    A comment in it, or another name for a function, is the library's own.
    """
    listing = LISTING.search(text)
    if not listing:
        return text
    numbers, words = {}, []
    for token in tokenize.generate_tokens(io.StringIO(listing[1]).readline):
        if token.type == tokenize.NAME and not keyword.iskeyword(token.string):
            words.append(f"name {numbers.setdefault(token.string, len(numbers))}")
        elif token.type not in (tokenize.COMMENT, tokenize.NL):
            words.append(token.string.strip() or tokenize.tok_name[token.type])
    return " ".join(words)
