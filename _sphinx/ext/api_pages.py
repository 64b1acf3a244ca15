"""The library's reference: a page for each part, from the docstrings, by autodoc.

A page below `reference/api` has a title only; what follows is written here when it is
read: each file with its chapters, and autodoc's entries of its public names. Docstrings
are the plain text that `help` prints, so they are made reStructuredText first. An entry
links to the chapters that develop and show it, and a chapter that shows a source to its
entry.

Where `BOOK_REFERENCE_LATER` is set, a page says that this comes later, and nothing
leads to entries: they take as long as all chapters together, which a reader waits for.
"""

import ast
import inspect
import json
import os
import re
import sys
from functools import cache
from pathlib import Path

from docutils import nodes
from links import xref
from sphinx.pycode import ModuleAnalyzer
from sphinx.transforms import SphinxTransform

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT), str(ROOT / "tools")]
import house

FOLDER = "reference/api"
#: What a page of another package holds: all of the trainer, and of the others what
#: chapters import, and what that returns.
OTHERS = {
    "trainkit": "command flags words ways job examples workers preparation fit "
    "replicas sharded language networks resume parts",
    "pslaunch": "calls runner job plan processes node ssh temporary",
    "netbox": "cluster host machine",
    "exercisekit": "answers clinic.parted_replicas.cases scale.puzzles.puzzle "
    "scale.puzzles.steps scale.puzzles.messages scale.puzzles.plans",
    "bookkit": "show style by_hand provenance findings stored "
    + " ".join(
        f"figures.{path.stem}" for path in sorted(ROOT.glob("bookkit/figures/[!_]*.py"))
    ),
}
SHOWN = re.compile(r"<summary>Library source: (.+?) in (.+?)</summary>")
CODE = re.compile(r"<code>(.+?)</code>")
#: In running text: code, strong, emphasis.
SPAN = re.compile(r"(`[^`]+`|\*\*[^*]+\*\*|(?<!\w)\*[^*\s](?:[^*]*[^*\s])?\*(?!\w))")
COLUMNS = re.compile(r"\S {2,}\S")
#: A constant's value stands beside it if it is as short as this.
SHORT = 60


def path_of(module):
    """Return the file of a module, below the root of the book."""
    path = ROOT / module.replace(".", "/")
    return path / "__init__.py" if path.is_dir() else path.with_suffix(".py")


@cache
def public(module):
    """Return what a module defines for others: {name: (its value, whether words
    describe it)}.

    Outside of the library, constants of which nothing is said are nobody else's.
    """
    found, text = {}, path_of(module).read_text("utf-8")
    lines = text.splitlines()
    for node in ast.parse(text).body:
        is_constant = isinstance(node, (ast.Assign, ast.AnnAssign))
        is_described = not is_constant or lines[node.lineno - 2].startswith("#:")
        if not (is_described or module.startswith("d2l_ext")):
            continue
        value = getattr(node, "value", None)
        for target in getattr(node, "targets", [getattr(node, "target", node)]):
            for i, one in enumerate(getattr(target, "elts", [target])):
                name = getattr(one, "id", getattr(one, "name", "_"))
                part = value if one is target else getattr(value, "elts", {i: None})[i]
                if not name.startswith("_"):
                    found[name] = part, is_described
    return found


@cache
def titles():
    """Return {title: path of its notebook}."""
    return house.titles(ROOT)


@cache
def pages():
    """Return {page: its sentence, and (module, contents, [chapters]) per file}."""
    found = {}
    for part in (".", *house.PARTS):
        package = "d2l_ext" if part == "." else f"d2l_ext.{part}"
        title, rows = house.rows(part, ROOT)
        files = [(f"{package}.{name}".replace("/", "."), *rest) for name, *rest in rows]
        found[package] = title, files
    for package, names in OTHERS.items():
        title = ast.get_docstring(ast.parse(path_of(package).read_text("utf-8")))
        files = [(f"{package}.{name}", "", []) for name in names.split()]
        found[package] = title.partition("\n")[0], files
    return found


def documented():
    """Return the modules that have a place on some page."""
    return {module for _, files in pages().values() for module, *_ in files}


@cache
def shown():
    """Return {full name: the chapters, as pages, that show its source}."""
    found = {}
    for path in sorted(ROOT.glob("chapters/*/*.ipynb")):
        page = path.relative_to(ROOT).with_suffix("").as_posix()
        for cell in json.loads(path.read_text("utf-8"))["cells"]:
            for output in cell.get("outputs", ()):
                text = "".join(output.get("data", {}).get("text/markdown", ""))
                for full in (full for _, full in entries_of(text)):
                    if page not in found.setdefault(full, []):
                        found[full].append(page)
    return found


def entries_of(html):
    """Yield (name, full name) of entries that `bookkit.show` printed in `html`."""
    for names, files in SHOWN.findall(html):
        modules = [f[:-3].replace("/", ".") for f in CODE.findall(files)]
        for name in CODE.findall(names):
            for module in documented().intersection(modules):
                if name in public(module):
                    yield name, f"{module}.{name}"


def markdown(package):
    """Return the page of `package`: its files, and what autodoc shows of each."""
    sentence, files = pages()[package]
    chapters = titles()
    lines = [sentence, "", f"`import {package}`", ""]
    for module, holds, read_in in files:
        links = [f"[{t}](/{chapters[t]})" for t in read_in if t in chapters]
        words = [f"read in: {', '.join(links)}"] if links else [
            f"used by {t.replace('all', 'all chapters', 1)}" for t in read_in]
        where = ", ".join([f"`{path_of(module).relative_to(ROOT)}`", *words]) + "."
        lines += [f"## {module[len(package) + 1:]}", "", where, ""]
        if public(module):
            lines += ["```{eval-rst}", f".. automodule:: {module}", "```", ""]
            _describe_constants(module)
        else:
            lines += [f"{holds[0].upper()}{holds[1:]}.", ""]
    return "\n".join(lines)


def _describe_constants(module):
    """Have autodoc take constants without a comment as well: their value speaks."""
    analyzer = ModuleAnalyzer.for_module(module)
    analyzer.analyze()
    for name, (_, is_described) in public(module).items():
        if not is_described:
            analyzer.attr_docs["", name] = [""]


def contents():
    """Return the first page: every page, its subject, and its number of names."""
    lines = ["| page | what it holds | names |", "|---|---|---|"]
    for page, (sentence, files) in pages().items():
        count = sum(len(public(module)) for module, *_ in files)
        lines.append(f"| [{page}](api/{page}.md) | {sentence} | {count} |")
    return "\n".join(lines)


def fill(app, docname, source):
    if docname.startswith(FOLDER):
        package = docname[len(FOLDER) + 1 :]
        if app.config.reference_later:
            made = "This page follows when the first chapter has run here."
        elif app.builder.name != "html":
            made = "On paper they are left out."
        else:
            made = markdown(package) if package else contents()
        source[0] += f"\n{made}\n"


def has_entries(app):
    """Return whether a link to an entry leads anywhere."""
    return app.builder.name == "html" and not app.config.reference_later


def keep(app, what, name, obj, skip, options):
    """Keep a method even if it says nothing of itself; drop the fields of a named
    tuple, which say their number.
    """
    if type(obj).__name__ == "_tuplegetter":
        return True
    is_method = inspect.isroutine(obj) or isinstance(obj, property)
    return False if what == "class" and is_method and name[0] != "_" else None


def sign(app, what, name, obj, options, signature, returned):
    """Write a signature without this machine's path, and with … for a factory."""
    if signature:
        signature = signature.replace(repr(sys.executable), "sys.executable")
        signature = signature.replace("<factory>", "…")
    return signature, returned


# From plain text to reStructuredText.


def restructured(text, link, chapter):
    """Return the docstring `text` in reStructuredText.

    `link`, `chapter`: what a word of code leads to, a title in emphasis; or None.
    """
    blocks = []
    for block in re.split(r"\n\s*\n", text.strip("\n")):
        is_set_in = block.startswith("    ")
        if is_set_in and blocks and blocks[-1][1].startswith("    "):
            blocks[-1][1] += f"\n\n{block}"
        elif block.strip():
            blocks.append([is_set_in or COLUMNS.search(block), block])
    made = (_verbatim(b) if c else _paragraph(b, link, chapter) for c, b in blocks)
    return "\n\n".join(made)


def _verbatim(block):
    block = inspect.cleandoc("\n" + block)
    try:
        ast.parse(block)
        language = "python"
    except SyntaxError:
        language = "text"
    lines = (f"   {line}".rstrip() for line in block.splitlines())
    return f".. code-block:: {language}\n\n" + "\n".join(lines)


def _paragraph(block, link, chapter):
    made = ""
    for i, part in enumerate(SPAN.split(" ".join(block.split()))):
        if i % 2 == 0:
            made += re.sub(r"([\\*`|_])", r"\\\1", part)
            continue
        words = part.strip("`*")
        if part[0] == "`":
            target = link(words)
            part = f":py:obj:`{words} <{target}>`" if target else f"``{words}``"
        elif page := chapter(words):
            part = f":doc:`{words} </{page}>`"
        made += f"\\ {part}\\ "
    return made


def page_of(title):
    """Return the page of the chapter with this title, or its first half; or None."""
    for whole, path in titles().items():
        if title in (whole, whole.partition(":")[0]):
            return path[: -len(".ipynb")]
    return None


def linker(module, name, obj):
    """Return a function from code in the docstring of `name` to its link, or None."""
    try:
        own = {name.rpartition(".")[2], *inspect.signature(obj).parameters}
    except (TypeError, ValueError):
        own = {name.rpartition(".")[2]}
    package = module.rpartition(".")[0]

    def link(words):
        words = words.removesuffix("()")
        if words in own:
            return None
        if words in public(module):
            return f"{module}.{words}"
        file, _, name = words.rpartition(".")
        beside = f"{package}.{file}"
        is_there = beside in documented() and name in public(beside)
        return f"{beside}.{name}" if is_there else None

    return link


def rewrite(app, what, name, obj, options, lines):
    """Rewrite autodoc's docstring in place; add a constant's value, and its pages."""
    module = name
    while not path_of(module).is_file():
        module = module.rpartition(".")[0]
    text = inspect.cleandoc("\n".join(lines))
    made = restructured(text, linker(module, name, obj), page_of)
    if what == "data":
        node, is_described = public(module)[name[len(module) + 1 :]]
        value = ast.get_source_segment(path_of(module).read_text("utf-8"), node)
        if len(value) < SHORT and "\n" not in value:
            made += f"\n\n``= {value}``"
        elif not is_described:
            made += f"\n\n{_verbatim(value)}"
    others = [p for p in shown().get(name, ()) if f"</{p}>" not in made]
    if others:
        made += "\n\nSource shown in " + ", ".join(f":doc:`/{p}`" for p in others) + "."
    lines[:] = made.strip().splitlines()


class LinkSources(SphinxTransform):
    """Below the heading of a source that a chapter shows: links to its entries."""

    default_priority = 400

    def apply(self):
        if not has_entries(self.app):
            return
        for raw in list(self.document.findall(nodes.raw)):
            links = [xref(self.env.docname, "py:obj", full, nodes.literal("", name))
                     for name, full in entries_of(raw.astext())]
            if links:
                line = nodes.paragraph("", "In the reference: ", classes=["api-links"])
                for i, link in enumerate(links):
                    line += [nodes.Text(", " if i else ""), link]
                raw.parent.insert(raw.parent.index(raw) + 1, line)


def file_link(env, name):
    """Return a library's file by name, with a link to its entries if it has any."""
    module = name[: -len(".py")].replace("/", ".")
    if not has_entries(env.app) or not public(module):
        return nodes.literal("", name)
    return xref(env.docname, "py:mod", module, nodes.literal("", name))


def setup(app):
    app.setup_extension("sphinx.ext.autodoc")
    # A change has every page read anew.
    is_later = bool(os.environ.get("BOOK_REFERENCE_LATER"))
    app.add_config_value("reference_later", is_later, "env")
    app.connect("source-read", fill)
    app.connect("autodoc-skip-member", keep)
    app.connect("autodoc-process-signature", sign)
    app.connect("autodoc-process-docstring", rewrite)
    app.add_transform(LinkSources)
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
