"""Links within the book that Sphinx resolves when all pages have been read."""

from sphinx import addnodes


def xref(docname, kind, target, words, **more):
    """Return a link on the page `docname`, shown as the node `words`.

    `kind`: domain and role, such as `std:ref`. A target that is nowhere is a warning.
    """
    domain, _, role = kind.partition(":")
    return addnodes.pending_xref(
        "", words, refdomain=domain, reftype=role, reftarget=target,
        refexplicit=True, refwarn=True, refdoc=docname, **more,
    )
