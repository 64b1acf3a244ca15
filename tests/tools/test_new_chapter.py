"""`make chapter` writes the skeleton of a chapter, and nothing over another."""

import shutil

import nbformat
import pytest
from notebook_cells import ROOT

import new_chapter
from notebooks import chapters


@pytest.fixture
def book(tmp_path):
    """A book of two chapters, in two parts."""
    for folder in ("chapters", "exercisekit", "tests", "d2l_ext"):
        (tmp_path / folder / "memory").mkdir(parents=True)
    (tmp_path / "chapters/scale").mkdir()
    for name in ("intro.md", "chapters/memory/old.ipynb", "chapters/scale/old.ipynb"):
        (tmp_path / name).touch()
    (tmp_path / "_toc.yml").write_text(
        "format: jb-book\nroot: intro\nparts:\n  - caption: Memory\n    chapters:\n"
        "      - file: chapters/memory/old\n  - caption: Scale\n    chapters:\n"
        "      - file: chapters/scale/old\n"
    )
    shutil.copy(ROOT / "d2l_ext/memory/__init__.py", tmp_path / "d2l_ext/memory")
    return tmp_path


def test_the_files_it_names_are_there_and_with_the_map_they_are_seven(book):
    written = new_chapter.write(book, "memory", "offload", lesson=True)
    assert len(written) == 6 and all((book / name).is_file() for name in written)
    for name in written:
        if name.endswith(".py"):
            compile((book / name).read_text("utf-8"), name, "exec")
    assert [path.as_posix() for path in chapters(book)] == [
        "chapters/memory/old.ipynb", written[0], "chapters/scale/old.ipynb"
    ]
    nb = nbformat.read(book / written[0], as_version=4)
    nbformat.validate(nb)
    assert nb.cells[0].source.startswith("# TITLE offload")


def test_it_writes_over_nothing(book):
    new_chapter.write(book, "memory", "offload", lesson=False)
    before = (book / "_toc.yml").read_text()
    for part, name in (("memory", "offload"), ("devices", "offload"), ("no", "new")):
        with pytest.raises(ValueError, match="taken|not a part"):
            new_chapter.write(book, part, name, lesson=False)
    assert (book / "_toc.yml").read_text() == before


def test_a_part_without_chapters_is_not_offered(book):
    assert new_chapter.parts(book) == ["memory", "scale"]
    assert "data" not in new_chapter.parts()
    with pytest.raises(ValueError, match="choose memory, scale"):
        new_chapter.write(book, "data", "offload", lesson=False)
