"""The library's reference: every public name, read well, linked both ways.

What is said of rendered pages is checked by `make html`, which names their folder.
"""

import ast
import os
import re
import sys
from pathlib import Path
from types import SimpleNamespace

import api_pages
import pytest
import yaml
from notebook_cells import ROOT, chapters, code_cells, read

FOLDER = os.environ.get("D2L_EXT_HTML", "")
PAGES = Path(FOLDER).resolve()
built = pytest.mark.skipif(not FOLDER, reason="no pages: `make html` builds them")
OF_MACHINES = re.compile(r" at 0x|&lt;factory|Alias for field|/site-packages|\\ ")
DEVELOPED = re.compile(r"[Dd]eveloped in (?:the chapter )?\*(.+?)\*")


def in_html(name):
    return (PAGES / f"{name}.html").read_text("utf-8")


def defined(path):
    """What a file defines at its top, without a leading underscore: read, not asked."""
    text = path.read_text("utf-8")
    names = re.findall(r"(?m)^(?:class|def|async def) (\w+)", text)
    for line in re.findall(r"(?m)^([A-Za-z]\w*(?:, \w+)*)(?:: \w+)? = ", text):
        names += line.split(", ")
    return {name for name in names if name[0] != "_"}


@pytest.mark.parametrize("path", sorted((ROOT / "d2l_ext").rglob("*.py")), ids=str)
def test_the_map_leads_to_every_public_name_of_the_library(path):
    module = ".".join(path.relative_to(ROOT).with_suffix("").parts)
    if path.name == "__init__.py":
        assert not defined(path)
    else:
        assert module in api_pages.documented()
        assert set(api_pages.public(module)) == defined(path)


def test_the_contents_of_the_book_have_every_page():
    toc = yaml.safe_load((ROOT / "_toc.yml").read_text("utf-8"))
    entries = [entry for part in toc["parts"] for entry in part["chapters"]]
    (api,) = [e for e in entries if e["file"] == api_pages.FOLDER]
    listed = {section["file"] for section in api["sections"]}
    assert listed == {f"{api_pages.FOLDER}/{page}" for page in api_pages.pages()}


def test_what_chapters_import_of_the_other_packages_has_a_place():
    used = set()
    for path in chapters().values():
        for cell in code_cells(read(path)):
            for node in ast.walk(ast.parse(re.sub("(?m)^[%!].*", "", cell.source))):
                if isinstance(node, ast.ImportFrom):
                    of = (node.module, *(f"{node.module}.{n.name}" for n in node.names))
                    used |= {m for m in of if api_pages.path_of(m).is_file()}
    used = {m for m in used if m.split(".")[0] in api_pages.OTHERS}
    assert used > {"bookkit.show", "pslaunch.plan"}
    folders = {*api_pages.OTHERS, "bookkit.figures", "exercisekit.scale",
               "exercisekit.scale.puzzles", "exercisekit.clinic.parted_replicas"}
    assert used - folders <= api_pages.documented()


DOCSTRING = """Sum `data`, as `expected` does: 2*k rounds, a_, `lenet.loss`, *in place*.

    allreduce(data)

k = 2     0   1
round 1   0 ← 1

Developed in the chapter *Allreduce*.
"""
WRITTEN = r"""Sum \ ``data``\ , as \ :py:obj:`expected <M.costs.expected>`\  does: 2\*k rounds, a\_, \ :py:obj:`lenet.loss <M.lenet.loss>`\ , \ *in place*\ .

.. code-block:: python

   allreduce(data)

.. code-block:: text

   k = 2     0   1
   round 1   0 ← 1

Developed in the chapter \ :doc:`Allreduce </chapters/data_parallel/allreduce>`\ .""".replace("M.", "d2l_ext.data_parallel.")  # noqa: E501


def test_a_docstring_is_made_restructured_text():
    name = "d2l_ext.data_parallel.costs.seconds"
    link = api_pages.linker(name.rpartition(".")[0], name, lambda data: 0)
    made = api_pages.restructured(DOCSTRING, link, api_pages.page_of)
    assert made == WRITTEN


def test_code_words_lead_to_what_they_name_there():
    module = "d2l_ext.data_parallel.step"
    link = api_pages.linker(module, f"{module}.train", lambda data, num_epochs: 0)
    assert link("data") is None and link("train") is None and link("mxnet.np") is None
    assert link("train_batch") == link("train_batch()") == f"{module}.train_batch"
    assert link("lenet.init_params()") == "d2l_ext.data_parallel.lenet.init_params"


def test_a_default_of_this_machine_is_not_printed():
    signature = f"(python={sys.executable!r}, steps: list = <factory>)"
    said, _ = api_pages.sign(*[None] * 5, signature, None)
    assert said == "(python=sys.executable, steps: list = …)"


def test_a_file_without_entries_is_no_link():
    app = SimpleNamespace(builder=SimpleNamespace(name="html"),
                          config=SimpleNamespace(reference_later=False))
    env = SimpleNamespace(app=app, docname="reference/techniques")
    kinds = [type(api_pages.file_link(env, f"d2l_ext/{name}.py")).__name__
             for name in ("train", "data_parallel/costs")]
    assert kinds == ["literal", "pending_xref"]


@built
@pytest.mark.parametrize("page", api_pages.pages())
def test_a_page_has_every_name_and_nothing_of_this_machine(page):
    html = in_html(f"{api_pages.FOLDER}/{page}")
    ids = set(re.findall(r'<dt class="sig[^>]* id="([^"]+)"', html))
    for module, *_ in api_pages.pages()[page][1]:
        assert {f"{module}.{name}" for name in api_pages.public(module)} <= ids
    article = html.partition("<article")[2].partition("</article")[0]
    assert not OF_MACHINES.search(article)
    assert str(ROOT) not in article and sys.prefix not in article


def entry(full):
    """The HTML of one entry."""
    page = max((p for p in api_pages.pages() if full.startswith(f"{p}.")), key=len)
    html = in_html(f"{api_pages.FOLDER}/{page}")
    return page, html.partition(f'id="{full}"')[2].partition('<dt class="sig ')[0]


@built
@pytest.mark.parametrize("full", api_pages.shown())
def test_a_shown_source_and_its_entry_link_to_each_other(full):
    page, html = entry(full)
    for chapter in api_pages.shown()[full]:
        assert f'href="../../{chapter}.html"' in html
        assert f"reference/api/{page}.html#{full}" in in_html(chapter)


@built
@pytest.mark.parametrize("page", api_pages.pages())
def test_an_entry_leads_to_the_chapter_in_which_it_is_developed(page):
    for module, *_ in api_pages.pages()[page][1]:
        for node in ast.parse(api_pages.path_of(module).read_text("utf-8")).body:
            is_entry = isinstance(node, (ast.FunctionDef, ast.ClassDef))
            words = (ast.get_docstring(node) or "").split() if is_entry else ()
            for title in DEVELOPED.findall(" ".join(words)):
                _, html = entry(f"{module}.{node.name}")
                assert f'href="../../{api_pages.page_of(title)}.html"' in html


@built
def test_the_page_of_techniques_leads_to_the_entries():
    html = in_html("reference/techniques")
    assert 'href="api/d2l_ext.memory.html#module-d2l_ext.memory.shards"' in html
