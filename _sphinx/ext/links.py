"""Nodes that several extensions make: links within the book, and tables."""

from docutils import nodes
from sphinx import addnodes


def xref(docname, kind, target, words, **more):
    """Return a link on the page `docname`, shown as the node `words`.

    Sphinx resolves it when all pages have been read. `kind`: domain and role, such as
    `std:ref`. A target that is nowhere is a warning.
    """
    domain, _, role = kind.partition(":")
    return addnodes.pending_xref(
        "", words, refdomain=domain, reftype=role, reftarget=target,
        refexplicit=True, refwarn=True, refdoc=docname, **more,
    )


def table(widths, head, rows, classes):
    """Return a table; `head` and each of `rows`: a row, as `row_of` makes it."""
    columns = [nodes.colspec(colwidth=width) for width in widths]
    group = nodes.tgroup("", *columns, nodes.thead("", head), nodes.tbody("", *rows),
                         cols=len(widths))
    return nodes.table("", group, classes=classes)


def row_of(cells, classes=None):
    """Return a row of a table; a cell is a node, or a text. `classes`: of each cell."""
    row = nodes.row()
    for cell, kind in zip(cells, classes or [[]] * len(cells)):
        shown = nodes.paragraph("", cell) if isinstance(cell, str) else cell
        row += nodes.entry("", shown, classes=kind)
    return row
