"""The house: who may import whom, what lies where, and the map that says so."""

import ast
import re
from graphlib import TopologicalSorter

import grimp
import pytest
from notebook_cells import ROOT, chapters, code_cells, read

import house
from packages import PACKAGES

TITLES = house.titles()
#: The first half of a title is enough in a docstring.
SHORT = {title.partition(":")[0]: title for title in TITLES}
#: Parts without chapters of their own, and who reads a file that no chapter does.
SHARED = {"data"}
COMMANDS = {"the trainer's command", "the doctor"}
DEVELOPED = re.compile(r"Developed in the chapter \*(.+?)\*")
FILES = [(part, *row) for part in house.PARTS for row in house.rows(part)[1]]


def test_no_module_imports_itself_by_a_detour():
    graph = grimp.build_graph(*PACKAGES, cache_dir=None)
    direct = {m: graph.find_modules_directly_imported_by(m) for m in graph.modules}
    assert len(direct) > 100
    TopologicalSorter(direct).prepare()  # CycleError names the circle


def test_a_part_has_one_name_for_its_chapters_its_lessons_and_its_tests():
    parts = {path.parent.name for path in (ROOT / "d2l_ext").glob("*/__init__.py")}
    assert parts == set(house.PARTS)
    assert {p.parent.name for p in chapters().values()} == parts - SHARED
    assert all(any((ROOT / "tests" / part).glob("test_*.py")) for part in parts)


@pytest.mark.parametrize("part", [".", *house.PARTS])  # the root, too
def test_the_map_of_a_part_names_each_of_its_files(part):
    folder = ROOT / "d2l_ext" / part
    files = folder.glob("*.py") if part == "." else folder.rglob("*.py")
    there = {file.relative_to(folder).with_suffix("").as_posix(): file
             for file in files if file.name != "__init__.py"}
    named = [row[0] for row in house.rows(part)[1]]
    assert len(set(named)) == len(named) and set(named) <= set(there)
    for name in set(there) - set(named):  # a file that adds itself to a registry
        assert "\nALGORITHM = " in there[name].read_text(encoding="utf-8")


@pytest.mark.parametrize(("part", "name", "holds", "read_by"), FILES, ids=str)
def test_a_chapter_that_the_map_names_uses_the_file(part, name, holds, read_by):
    source = (ROOT / "d2l_ext" / part / f"{name}.py").read_text(encoding="utf-8")
    tree, last = ast.parse(source), name.rpartition("/")[2]
    names = {last, *(getattr(node, "name", last) for node in tree.body)}
    assert set(read_by) <= {*TITLES, *COMMANDS}
    for title in set(read_by) & set(TITLES):
        code = " ".join(c.source for c in code_cells(read(ROOT / TITLES[title])))
        assert names & set(re.findall(r"\w+", code)), f"{title} does not use {name}"


def test_the_readme_has_the_map():
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    assert text == house.put(text, house.written()), "make map"


def test_exercises_lie_in_the_folder_and_file_of_their_chapter():
    folder = ROOT / "exercisekit"
    there = {path.relative_to(folder).with_suffix("").as_posix()
             for path in folder.glob("[!_]*/[!_]*")}
    checking = {
        page.partition("/")[2] for page, path in chapters().items()
        if any("check(" in cell.source for cell in code_cells(read(path)))
    }
    assert there == checking


def developed():
    """(file, definition, chapter) for each docstring that names its chapter."""
    for package in PACKAGES:
        for path in sorted((ROOT / package).rglob("*.py")):
            for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
                if isinstance(node, (ast.Module, ast.ClassDef, ast.FunctionDef)):
                    words = " ".join((ast.get_docstring(node) or "").split())
                    for title in DEVELOPED.findall(words):
                        yield path, getattr(node, "name", path.parent.name), title


@pytest.mark.parametrize(("path", "name", "title"), developed(), ids=str)
def test_a_chapter_in_which_something_was_developed_names_it(path, name, title):
    assert title in SHORT, f"{name} in {path}: no chapter has this title"
    cells = read(ROOT / TITLES[SHORT[title]]).cells
    # A package, by what it is imported as.
    assert re.search(rf"\b{name}\b", "\n".join(cell.source for cell in cells))


def test_the_root_holds_what_a_reader_looks_for_there():
    pages = {path.name for path in ROOT.glob("*.md")}
    assert pages == {"README.md", "CONTRIBUTING.md", "CHANGELOG.md", "intro.md"}
