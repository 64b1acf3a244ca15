"""Puts recorded measurements into a page: no figure is typed by hand.

A table, with a column per dotted path into the entries of a list::

    ```{results-table} data_parallel rows
    :columns: name, step_ms.median, speed_up.median
    :headings: Step, ms, one device / this
    ```

With `:chart: step_ms.median` the rows are drawn as bars, and the table is folded below
them; `:range: step_ms.min, step_ms.max` draws how far the figure went, `:label:` names
other columns than the first, `:only: use unseen` draws some of the rows, and
`:apart: what` makes a chart, with a scale of its own, of each value of that column.
A chart with figures below 0 has its zero in the middle.

Columns of figures are aligned right. The column `row` numbers the rows, and a value of
`against`, the `id` of a row, is shown by that row's number.

A single figure stands in a sentence: ``{result}`data_parallel rows.flat-2.devices` ``.
An entry of a list is named by its `id` or by its number. Figures have as many digits
as the option or role says: ``{result}`data_parallel bars.0.value 2` ``.
"""

import os
import re
from datetime import datetime
from html import escape
from typing import ClassVar

from docutils import nodes
from docutils.parsers.rst import directives
from links import row_of, table
from sphinx.util.docutils import SphinxDirective, SphinxRole

from bookkit import stored
from bookkit.provenance import counted


def load(env, name):
    """Return the `Record` of result `name`; the page is read again if it changes."""
    folder = os.path.join(env.srcdir, "benchmarks", "results")
    env.note_dependency(os.path.join(folder, f"{name}.json"))
    return stored.read(name, folder)


def look_up(value, path):
    """Return the entry of nested dicts and lists at a dotted `path`; None when it is
    null.

    Raises `KeyError`, with the names that there are, when one is not known, and for a
    name below a figure or a word.
    """
    for part in path.split("."):
        if value is None:
            return None
        if isinstance(value, list):
            named = {str(e["id"]): e for e in value
                     if isinstance(e, dict) and "id" in e}
            value = {**{str(i): e for i, e in enumerate(value)}, **named}
        if not isinstance(value, dict):
            raise KeyError(f"no {part!r} in {path!r}: {value!r} has no entries")
        if part not in value:
            raise KeyError(f"no {part!r} in {path!r}: there are {', '.join(value)}")
        value = value[part]
    return value


SIGNS = {">=": "≥", "<=": "≤"}


def text_of(value, digits):
    """Return a value for readers: figures rounded, yes and no, a dash for nothing."""
    if value is None:
        return "—"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, float):
        text = f"{value:,.{digits}f}"
        return text if re.search("[1-9]", text) else text.lstrip("-")
    return f"{value:,}" if isinstance(value, int) else SIGNS.get(value, str(value))


def provenance(result):
    """Return one line: processor, cores, versions, date, commit."""
    machine, day = result.machine, datetime.fromisoformat(result.date).date()
    # Results without versions come from an environment that the lock made.
    versions = ", ".join(" ".join(pair) for pair in result.versions.items())
    return (
        f"Measured on {machine['cores']} cores ({machine['processor']}) with "
        f"{versions or 'the versions in requirements/locks/cpu.txt'}, "
        f"{day:%d %B %Y}, commit {result.commit}."
    )


class ResultsTable(SphinxDirective):
    """A table of a list in a recorded result, and a line that says from where."""

    required_arguments = 2  # the result, and the path of the list
    option_spec: ClassVar = {
        "columns": directives.unchanged_required,
        "headings": directives.unchanged_required,
        "digits": directives.nonnegative_int,
        "chart": directives.unchanged,
        "range": directives.unchanged,
        "label": directives.unchanged,
        "only": directives.unchanged,
        "apart": directives.unchanged,
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
            entries = numbered(look_up(result.data, path))
            right = [["figure-right"] * any(is_figure(e, c) for e in entries)
                     for c in columns]
            rows = [row_of(self.row(e, columns), right) for e in entries]
            drawn = "chart" in self.options and self.charts(
                entries, dict(zip(columns, headings)))
        except KeyError as problem:
            raise self.error(f"{name}.json: {problem.args[0]}") from None
        widths, head = [1] * len(columns), row_of(headings, right)
        shown = [table(widths, head, rows, ["results-table"])]
        if drawn:
            fold = "<details><summary>All figures</summary>"
            shown = [raw(drawn), raw(fold), *shown, raw("</details>")]
        return [*shown, nodes.paragraph("", provenance(result), classes=["provenance"])]

    def charts(self, entries, headings):
        """Return the rows as bars, in HTML."""
        column, digits = self.options["chart"], self.options.get("digits", 2)
        labels = self.options.get("label", "name").split(", ")
        ends = [c for c in self.options.get("range", "").split(", ") if c]
        key, wanted = self.options.get("only", " ").split(" ", 1)
        entries = [e for e in entries if not key or look_up(e, key) == wanted]
        apart = self.options.get("apart")
        groups = {}
        for entry in entries:
            if is_figure(entry, column):
                named = (look_up(entry, c) for c in labels)
                words = ", ".join(text_of(n, digits) for n in named
                                  if n not in ("", None))
                group = groups.setdefault(look_up(entry, apart) if apart else "", [])
                group.append((words, *(look_up(entry, c) for c in [column, *ends])))
        return "".join(
            chart(rows, ", ".join(filter(None, [group, headings[column]])), digits)
            for group, rows in groups.items()
        )

    def row(self, entry, columns):
        if "missing" in entry:
            empty = ["not measured"] + [""] * (len(columns) - 2)
            return [text_of(look_up(entry, columns[0]), 2), *empty]
        digits = self.options.get("digits", 2)
        return [text_of(look_up(entry, c), digits) for c in columns]


def raw(html):
    return nodes.raw("", html, format="html")


def chart(rows, heading, digits=2):
    """Draw rows of `(label, figure, least, most)`, or without a range, as bars in HTML.

    All begin at 0 and share one scale; figures below 0 go to the left of it.
    """
    figures = [f for _, *own in rows for f in own]
    low, high = min(0, *figures), max(0, *figures)
    if low < 0:
        low, high = -max(-low, high), max(-low, high)

    def at(value):
        return 100 * (value - low) / ((high - low) or 1)

    lines = []
    for label, figure, *ends in rows:
        first, last = sorted((at(0), at(figure)))
        spans = [("bar", first, last)] + ([("range", *map(at, ends))] if ends else [])
        drawn = "".join(
            f'<i class="{kind}" style="left: {a:.2f}%; width: {b - a:.2f}%"></i>'
            for kind, a, b in spans
        )
        lines.append(
            f'<tr><th scope="row">{escape(label)}</th><td class="bars">{drawn}</td>'
            f'<td class="figure-right">{text_of(figure, digits)}</td></tr>'
        )
    return (
        '<table class="results-chart"><thead><tr>'
        f'<th scope="col">{escape(heading)}</th><td></td><td></td></tr></thead>'
        f"<tbody>{''.join(lines)}</tbody></table>"
    )


def numbered(entries):
    """Return the entries with their `row` number, and that of the one `against`."""
    rows = {e["id"]: number for number, e in enumerate(entries, 1) if "id" in e}
    return [{"name": name_of(entry), "job": job_of(entry), **entry, "row": number,
             "against": rows.get(entry.get("against"))}
            for number, entry in enumerate(entries, 1)]


#: What variables of MXNet do in a row, in words.
VARIABLES = {
    "MXNET_KVSTORE_BIGARRAY_BOUND": "no array is cut",
    "DMLC_LOCAL": "Unix sockets",
    "MXNET_KVSTORE_REDUCTION_NTHREADS": "threads that sum: {}",
}


#: The words for the kind of a case of the cost model, and what its numbers count.
SERVERS = ("worker", "server", "array")
CASES = {
    **{way: (f"{way} allreduce", ("device",)) for way in ("naive", "tree", "ring")},
    **{store: (f"the store {store}", ("device",)) for store in ("local", "device")},
    "gradient": ("LeNet's gradient", ("image",)),
    "step": ("LeNet's step, allreduce", ("", "device", "image")),
    "stage": ("a stage", ("block", "row", "micro-batch")),
    "pipeline": ("a pipeline", ("block", "row", "micro-batch")),
    "block": ("a block", ("row", "unit")),
    "layerwise": ("inside a layer", ("device", "row", "unit")),
    "dist": ("dist_sync", SERVERS),
    "dist compressed": ("dist_sync, compressed", SERVERS),
    "dist lenet": ("LeNet, dist_sync", ("worker", "server", "image")),
}


def name_of(entry):
    """Return a name for a row without one: what it does, and its particulars."""
    kind, *numbers = str(entry.get("id", "")).split(", ")
    if kind in CASES:
        words, units = CASES[kind]
        numbers[: len(units)] = map(counted, numbers, units)
        return f"{words}: {', '.join(numbers)}"
    return ", ".join([entry.get("what", ""), *special_of(entry)])


def special_of(entry):
    special = ["servers update"] if entry.get("on_store") else []
    return special + [VARIABLES[k].format(v) for k, v in entry.get("env", {}).items()]


def job_of(entry):
    """Return a row's store, its number of workers, and what is special about it."""
    words = [entry.get("kind") or "without a store"]
    for key, unit, usual in (("workers", "worker", 0), ("servers", "server", 1),
                             ("devices", "device", 1)):
        if entry.get(key, usual) > usual:
            words.append(counted(str(entry[key]), unit))
    return ", ".join(words + special_of(entry))


def is_figure(entry, column):
    """Return whether there is a number in this column of an entry."""
    value = None if "missing" in entry else look_up(entry, column)
    return isinstance(value, (int, float)) and not isinstance(value, bool)


class ResultRole(SphinxRole):
    """A single figure of a recorded result."""

    def run(self):
        name, path, *digits = self.text.split()
        try:
            value = look_up(load(self.env, name).data, path)
        except (KeyError, OSError) as problem:
            message = f"result {self.text!r}: {problem.args[0]}"
            return [], [self.inliner.reporter.error(message, line=self.lineno)]
        return [nodes.Text(text_of(value, int(digits[0]) if digits else 2))], []


def setup(app):
    app.add_directive("results-table", ResultsTable)
    app.add_role("result", ResultRole())
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
