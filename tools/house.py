#!/usr/bin/env python3
"""The map of the library: the content of each file, and the chapters that use it.

It is in the docstring of each part's `__init__.py`; this writes it into the README.
"""

import ast
import json
import re
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
#: The parts of the library, in the order in which they may import each other.
PARTS = (
    "devices", "data", "data_parallel", "memory", "tensor_parallel", "pipeline",
    "meshes", "kvstore", "clusters", "clinic", "scale",
)
BEGIN, END = "<!-- The map: `make map` writes it. -->", "<!-- The map ends. -->"


def rows(part, root=ROOT):
    """Return a part's title, and (file, what it holds, [chapters]) per file."""
    source = (root / "d2l_ext" / part / "__init__.py").read_text(encoding="utf-8")
    title, _, rest = ast.get_docstring(ast.parse(source)).partition("\n")
    table = [line.strip("| ").split(" | ") for line in rest.splitlines() if "|" in line]
    # Titles may hold commas themselves.
    name_of = re.compile("|".join(map(re.escape, titles(root))))
    return title, [
        (name.strip("`"), holds, name_of.findall(chapters) or [chapters])
        for name, holds, chapters in table[2:]
    ]


def titles(root=ROOT):
    """Return the chapters by their titles: paths below `root`."""
    found = {}
    for path in sorted(root.glob("chapters/*/*.ipynb")):
        first = "".join(json.loads(path.read_text("utf-8"))["cells"][0]["source"])
        title = re.search("(?m)^# (.+)$", first)[1]
        found[title] = path.relative_to(root).as_posix()
    return found


def written(root=ROOT):
    """Return the map as Markdown."""
    pages, lines = titles(root), []
    for part in PARTS:
        title, files = rows(part, root)
        lines += [f"**{title.rstrip('.')}**: `d2l_ext/{part}`", ""]
        lines += ["| file | what it holds | chapters |", "|---|---|---|"]
        for name, holds, chapters in files:
            links = (f"[{c}]({pages[c]})" if c in pages else c for c in chapters)
            lines.append(f"| `{name}` | {holds} | {', '.join(links)} |")
        lines.append("")
    return "\n".join(lines)


def put(text, table):
    """Return `text` with `table` between the two marks."""
    before, _, rest = text.partition(BEGIN)
    return f"{before}{BEGIN}\n\n{table}\n{END}{rest.partition(END)[2]}"


def main():
    """Write the README; return the exit status."""
    page = ROOT / "README.md"
    page.write_text(put(page.read_text("utf-8"), written()), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
