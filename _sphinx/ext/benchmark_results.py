"""Puts recorded measurements into a page: no figure is typed by hand.

A table, with a column per dotted path into the entries of a list::

    ```{results-table} data_parallel rows
    :columns: name, step_ms.median, speed_up.median
    :headings: Step, ms, one device / this
    ```

Columns of figures are aligned right. The column `row` numbers the rows, and a value of
`against`, the `id` of a row, is shown by that row's number.

A single figure stands in a sentence: ``{result}`data_parallel rows.flat-2.devices` ``.
An entry of a list is named by its `id` or by its number. Figures have as many digits
as the option or role says: ``{result}`data_parallel bars.0.value 2` ``.
"""

import json
import os
import re
from datetime import datetime
from typing import ClassVar

from docutils import nodes
from docutils.parsers.rst import directives
from sphinx.util.docutils import SphinxDirective, SphinxRole


def load(env, name):
    """The result `name` as a dictionary; the page is read again when it changes."""
    path = os.path.join(env.srcdir, "benchmarks", "results", f"{name}.json")
    env.note_dependency(path)
    with open(path, encoding="utf-8") as stream:
        return json.load(stream)


def look_up(value, path):
    """The entry of nested dicts and lists at a dotted `path`; None when it is null.

    Raises `KeyError` with the names that there are when one is not known.
    """
    for part in path.split("."):
        if value is None:
            return None
        if isinstance(value, list):
            named = {str(e.get("id", i)): e for i, e in enumerate(value)}
            value = {**{str(i): e for i, e in enumerate(value)}, **named}
        if part not in value:
            raise KeyError(f"no {part!r} in {path!r}: there are {', '.join(value)}")
        value = value[part]
    return value


def text_of(value, digits):
    """A value for the reader: figures rounded, yes and no, a dash for nothing."""
    if value is None:
        return "—"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, float):
        text = f"{value:,.{digits}f}"
        return text if re.search("[1-9]", text) else text.lstrip("-")
    return f"{value:,}" if isinstance(value, int) else str(value)


def provenance(result):
    """One line: processor, cores, versions, date, commit."""
    machine, day = result["machine"], datetime.fromisoformat(result["date"]).date()
    # Results without versions come from an environment that the lock made.
    versions = ", ".join(" ".join(pair) for pair in result.get("versions", {}).items())
    return (
        f"Measured on {machine['cores']} cores ({machine['processor']}) with "
        f"{versions or 'the versions in requirements/locks/cpu.txt'}, "
        f"{day:%d %B %Y}, commit {result['commit']['describe']}."
    )


class ResultsTable(SphinxDirective):
    """A table of a list in a recorded result, and a line that says from where."""

    required_arguments = 2  # the result, and the path of the list
    option_spec: ClassVar = {
        "columns": directives.unchanged_required,
        "headings": directives.unchanged_required,
        "digits": directives.nonnegative_int,
    }

    def run(self):
        name, path = self.arguments
        result = load(self.env, name)
        columns, headings = (
            [part.strip() for part in self.options[key].split(",")]
            for key in ("columns", "headings")
        )
        if len(columns) != len(headings):
            raise self.error(f"{len(columns)} columns have {len(headings)} headings")
        try:
            entries = numbered(look_up(result, path))
            rows = [self.row(e, columns) for e in entries]
        except KeyError as problem:
            raise self.error(f"{name}.json: {problem.args[0]}") from None
        group = nodes.tgroup(cols=len(columns))
        group += [nodes.colspec(colwidth=1) for _ in columns]
        right = [any(is_figure(e, c) for e in entries) for c in columns]
        group += nodes.thead("", row_of(headings, right))
        group += nodes.tbody("", *(row_of(texts, right) for texts in rows))
        table = nodes.table("", group, classes=["results-table"])
        return [table, nodes.paragraph("", provenance(result), classes=["provenance"])]

    def row(self, entry, columns):
        if "missing" in entry:
            empty = ["not measured"] + [""] * (len(columns) - 2)
            return [text_of(look_up(entry, columns[0]), 2), *empty]
        digits = self.options.get("digits", 2)
        return [text_of(look_up(entry, c), digits) for c in columns]


def numbered(entries):
    """The entries with their number as `row`, and with that of the row in `against`."""
    rows = {e["id"]: number for number, e in enumerate(entries, 1) if "id" in e}
    return [{"name": name_of(entry), **entry, "row": number,
             "against": rows.get(entry.get("against"))}
            for number, entry in enumerate(entries, 1)]  # fmt: skip


#: What variables of MXNet do in a row, in words.
VARIABLES = {
    "MXNET_KVSTORE_BIGARRAY_BOUND": "no array is cut",
    "DMLC_LOCAL": "Unix sockets",
    "MXNET_KVSTORE_REDUCTION_NTHREADS": "threads that sum: {}",
}


def name_of(entry):
    """A name for a row that has none: what it does, and what is special about it."""
    special = ["servers update"] if entry.get("on_store") else []
    special += [VARIABLES[k].format(v) for k, v in entry.get("env", {}).items()]
    return ", ".join([entry.get("what", ""), *special])


def is_figure(entry, column):
    """Whether there is a number in this column of an entry."""
    value = None if "missing" in entry else look_up(entry, column)
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def row_of(texts, right):
    """A row of a table; `right`: for each of its cells, whether it is aligned right."""
    kinds = [["figure-right"] if is_right else [] for is_right in right]
    return nodes.row("", *[nodes.entry("", nodes.paragraph("", t), classes=kind)
                           for t, kind in zip(texts, kinds)])  # fmt: skip


class ResultRole(SphinxRole):
    """A single figure of a recorded result."""

    def run(self):
        name, path, *digits = self.text.split()
        try:
            value = look_up(load(self.env, name), path)
        except (KeyError, OSError) as problem:
            message = f"result {self.text!r}: {problem.args[0]}"
            return [], [self.inliner.reporter.error(message, line=self.lineno)]
        return [nodes.Text(text_of(value, int(digits[0]) if digits else 2))], []


def setup(app):
    app.add_directive("results-table", ResultsTable)
    app.add_role("result", ResultRole())
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
