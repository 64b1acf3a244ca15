"""The page of environment variables names all that are used, and what shows each."""

import ast
import re
from functools import cache
from importlib.util import find_spec
from pathlib import Path

import pytest
from notebook_cells import ROOT, chapters, read

from packages import PACKAGES

PAGE = ROOT / "reference/environment_variables.md"
NAME = r"(?:DMLC|PS|MXNET|OMP|D2L_EXT|MALLOC|GLIBC|XDG|NCCL|CUDA)_[A-Z0-9_]+"
MXNET_READS = re.compile(r"(?:DMLC|PS|MXNET|OMP)_|PORT$")
#: A term, what it does, who reads it when, and what shows it.
ENTRY = re.compile(r"(?m)^(`[A-Z].*)\n: (.+)\n\n  "
                   r"\*Read\*: (.+)\. \*Shown by\*: (.+)\.$")


def entries():
    """Each entry of the page: its names, and who shows them."""
    text = PAGE.read_text(encoding="utf-8")
    found = [(re.findall(r"`(\w+)`", e[1]), e[4]) for e in ENTRY.finditer(text)]
    assert len(found) == len(re.findall("(?m)^: ", text)), "an entry is not whole"
    return found


def on_page():
    return [name for names, _ in entries() for name in names]


def named():
    """Every variable that code which readers run or a chapter names, with a file."""
    own = [path for each in PACKAGES for path in ROOT.glob(f"{each}/**/*.py")]
    others = *ROOT.glob("benchmarks/*/**/*.py"), *chapters().values()
    return {name: path.name for path in (*own, *others)
            for name in re.findall(rf"\b{NAME}\b", source(path))}


@cache
def source(path):
    """A file's text; of a chapter its cells, without their outputs."""
    if path.suffix == ".ipynb":
        return "\n".join(cell.source for cell in read(path).cells)
    return path.read_text(encoding="utf-8")


@cache
def functions(path):
    tree = ast.parse(source(path))
    return {n.name for n in tree.body if isinstance(n, ast.FunctionDef)}


def test_every_variable_of_the_library_and_the_chapters_is_on_the_page():
    missing = {n: file for n, file in named().items() if n not in on_page()}
    assert not missing, f"they need a row in {PAGE.name}: {missing}"


def test_no_variable_stands_there_twice():
    names = on_page()
    assert len(names) == len(set(names))


@pytest.mark.parametrize("names, shown", entries(), ids=lambda x: "")
def test_what_is_said_to_show_a_variable_exists(names, shown):
    tests = re.findall(r"`tests/([\w/]+\.py)(?:::(\w+))?`", shown)
    pages = re.findall(r"\{doc\}`(?:[^`<]*<)?([\w/]+)>?`", shown)
    pages += re.findall(r"\]\(([\w/.]+)\.ipynb[#)]", shown)
    claims = re.findall(r"\{ref\}`[^`<]*<claim-t?(\w+)>`", shown)
    for file, function in tests:
        path = ROOT / "tests" / file
        assert path.is_file(), file
        assert not function or function in functions(path), f"{file}::{function}"
    for page in pages:
        place = ROOT if page.startswith("/") else f"{PAGE.parent}/"
        assert any(Path(f"{place}{page}{end}").is_file() for end in (".ipynb", ".md"))
    for claim in claims:
        assert any(f'"claim-T{claim}"' in p.read_text() for p in chapters().values())
    said = shown.startswith("nothing")
    assert tests or pages or claims or said, f"{names}: what shows it, or 'nothing'"


def test_mxnet_holds_the_name_of_each_variable_that_it_is_said_to_read():
    """In its library, or in its Python files."""
    package = Path(find_spec("mxnet").submodule_search_locations[0])
    texts = [package / "libmxnet.so", package / "model.py", package / "optimizer"
             / "optimizer.py"]
    held = b"".join(path.read_bytes() for path in texts)
    of_launchers = ("DMLC_WORKER_ID", "DMLC_SERVER_ID")
    wrong = [
        name
        for name in on_page()
        if MXNET_READS.match(name) and name not in of_launchers
        and name.encode() not in held
    ]
    assert not wrong, f"MXNet does not know {wrong}"
