"""What a page says of a reader's code is what the notebook says."""

import base64
import io
import json
import py_compile
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import nbformat
import pytest

from bookkit.lab import cells, engine, pack
from exercisekit import questions
from exercisekit.question import Task

ROOT = Path(__file__).parents[2]
ENGINE = ROOT / engine.BROUGHT
CHAPTERS = sorted(pack.chapters())
CELLS = pack.cells_of()

#: Makes a Python without NumPy and MXNet, or one in which `arrays` takes their place.
STAND_IN = "from bookkit.lab import desk\ndesk.stand_in()"
VERDICTS = """
import json
from exercisekit.answers import questions
from exercisekit.question import Task, says

def printed(cells):
    return json.dumps([json.loads(desk.run_and_judge(chapter, 0, code))
                       for chapter, codes in cells.items() for code in codes])

def verdicts(chapters):
    return json.dumps([
        says(task, function) for chapter in chapters
        for task in questions(chapter).values() if isinstance(task, Task)
        for function in (task.right, *(wrong for wrong, _ in task.wrong))])
"""
#: A page's Python, in Node.
NODE = """
import fs from "node:fs";
const [folder, zip, python, name, given] = process.argv.slice(2);
const { loadPyodide } = await import(`${folder}/pyodide.mjs`);
const it = await loadPyodide({ indexURL: folder });
const bytes = new Uint8Array(fs.readFileSync(zip));
it.unpackArchive(bytes, "zip", { extractDir: "/home/b" });
it.runPython("import sys; sys.path.insert(0, '/home/b')");
it.runPython(fs.readFileSync(python, "utf8"));
const found = it.globals.get(name)(it.toPy(JSON.parse(given)));
process.stdout.write(found);
"""


def in_a_process(*command, cwd=ROOT):
    """What the last line that `command` prints says in JSON."""
    ran = subprocess.run(command, cwd=cwd, check=False, capture_output=True, text=True)
    assert ran.returncode == 0, ran.stderr[-2000:]
    return json.loads(ran.stdout.splitlines()[-1])


def with_numpy(name, given, first=""):
    """What the function `name` of `VERDICTS` gives, in a Python of its own."""
    code = f"import d2l_ext\n{first}\n{VERDICTS}\nprint({name}({given}))"
    return in_a_process(sys.executable, "-c", code)


def with_small_arrays(name, given):
    return with_numpy(name, given, STAND_IN)


@pytest.fixture(scope="module")
def in_the_book():
    return with_numpy("verdicts", CHAPTERS)


def test_small_arrays_lead_to_the_verdicts_of_numpy(in_the_book):
    assert with_small_arrays("verdicts", CHAPTERS) == in_the_book


in_node = pytest.mark.skipif(
    not (ENGINE.is_dir() and shutil.which("node")),
    reason="no engine here: make engine, with npm and a network")


def page(tmp_path, name, given):
    """What the function `name` of `VERDICTS` gives in the page's Python, in Node."""
    (tmp_path / "run.mjs").write_text(NODE, "utf-8")
    (tmp_path / "pack.zip").write_bytes(base64.b64decode(pack.zipped()))
    (tmp_path / "verdicts.py").write_text(f"{STAND_IN}\n{VERDICTS}", "utf-8")
    return in_a_process("node", "run.mjs", str(ENGINE), "pack.zip", "verdicts.py", name,
                        json.dumps(given), cwd=tmp_path)


@in_node
def test_a_page_gives_the_verdicts_of_the_notebook(in_the_book, tmp_path):
    assert page(tmp_path, "verdicts", CHAPTERS) == in_the_book


def stored():
    """What the notebooks store of cells with an editor, as the desk says it."""
    found = []
    for path in sorted(ROOT.glob("chapters/*/*.ipynb")):
        for cell in nbformat.read(path, as_version=4).cells:
            if "lab" in cell.metadata.get("tags", []):
                text = "".join(o.get("text") or f"{o.data['text/plain']}\n"
                               for o in cell.outputs)
                found.append({"printed": text, "said": "", "runs": []})
    return found


def test_a_cell_with_an_editor_prints_with_small_arrays_what_its_chapter_shows():
    assert with_small_arrays("printed", CELLS) == stored()


@in_node
def test_a_cell_with_an_editor_prints_in_its_page_what_its_chapter_shows(tmp_path):
    assert page(tmp_path, "printed", CELLS) == stored()


def test_most_chapters_have_an_editor_for_an_idea_and_each_prints_something():
    assert len(CELLS) >= 30
    assert all(told["printed"] for told in stored())


def test_an_editor_begins_with_what_its_cell_needs_of_earlier_ones():
    earlier = ("%matplotlib inline\nimport numpy, os\nfrom math import inf, pi",
               "a, b = 1, 2\nc = 3\n\n\ndef twice(x):\n    return x * factor",
               "factor = 2\nlast = [c for c in range(3)]\na += 1")
    cell = "for c in (a,):\n    print(twice(c), pi, numpy.e)"
    assert cells.alone([*map(cells._plain, earlier), cell]) == (
        "import numpy\nfrom math import pi\n\n\na, b = 1, 2\n\n\n"
        "def twice(x):\n    return x * factor\n\n\nfactor = 2\na += 1\n\n\n"
        f"{cell}\n")


@pytest.mark.parametrize("earlier, cell", [
    ("k = 3", "k += 1\nprint(k)"),
    ("k = 3", "for i in range(2):\n    k += i"),
    ("class Late(Exception):\n    ...", "try:\n    pass\nexcept Late:\n    pass"),
    ("a = {0: 1}", "b = [a[k] for k in range(1)]\na = b"),
    ("a = 1", "class A:\n    b = a\n\n\na = 2"),
])
def test_what_a_cell_reads_before_it_binds_it_is_of_an_earlier_one(earlier, cell):
    assert cells.alone([earlier, cell]) == f"{earlier}\n\n\n{cell}\n"


@pytest.mark.parametrize("cell", [
    "def f():\n    k = 0\n    k += 1", "f = lambda: k\nk = 2", "[k for k in range(2)]",
    "f = [lambda: k for _ in range(2)]\nk = 2", "{k: 0 for k in range(2)}"])
def test_what_a_cell_has_itself_is_not_taken_of_an_earlier_one(cell):
    assert cells.alone(["k = 3", cell]) == f"{cell}\n"


def test_a_cell_that_needs_what_a_page_lacks_has_no_editor():
    for missing in ("from mxnet import np", "import matplotlib.pyplot as plt",
                    "from bookkit import show", "from netbox import box"):
        assert pack.needed_by(missing) is None
    assert pack.needed_by("import numpy, math") == set()
    assert "d2l_ext/pipeline/partition.py" in pack.needed_by(
        "from d2l_ext.pipeline.partition import balance")


def test_compiled_files_of_the_judges_are_not_read_as_sources(tmp_path):
    judges = tmp_path / "exercisekit" / "part"
    judges.mkdir(parents=True)
    (judges / "chapter.py").write_text("import math\n", "utf-8")
    (tmp_path / "exercisekit/answers.py").write_text("", "utf-8")
    for source in ("exercisekit/answers.py", "exercisekit/part/chapter.py"):
        assert "__pycache__" in py_compile.compile(tmp_path / source)
    assert pack.chapters(tmp_path) == {"chapter": "exercisekit/part/chapter.py"}


def test_most_exercises_and_all_puzzles_can_be_written_in_their_page():
    tasks = [key for key, task in questions().items() if isinstance(task, Task)]
    here = [key for key in tasks if key[0] in CHAPTERS]
    assert len(here) >= 70
    assert sum(chapter == "puzzles" for chapter, _ in here) == 12


def test_an_editor_begins_with_the_head_of_what_is_asked():
    assert pack.stub(questions("halving")["halving", 4]) == (
        "def folded(data, exchange):\n    ...\n")
    assert pack.stub(questions("halving")["halving", 1]) == (
        "# the number of rounds\nanswer = None\n")


@pytest.fixture(scope="module")
def desk():
    """A function that asks the desk about code, as a page does: in one process."""
    work = ("import d2l_ext, json, sys\nsys.modules['resource'] = None\n"
            "from bookkit.lab import desk\ndesk.stand_in()\n"
            "for code in map(json.loads, sys.stdin):\n"
            "    print(desk.run_and_judge('allreduce', 3, code), flush=True)")
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
    with subprocess.Popen([sys.executable, "-c", work], cwd=ROOT, **pipes) as process:

        def told(code):
            process.stdin.write(f"{json.dumps(code)}\n")
            process.stdin.flush()
            return json.loads(process.stdout.readline())

        yield told


def test_the_messages_of_the_readers_code_are_told_round_by_round(desk):
    code = ("def broadcast(values, exchange):\n"
            "    for j in range(1, len(values)):\n"
            "        values[j] = exchange({(0, j): values[0]})[0, j]\n")
    found = desk(code)
    assert found["runs"] == [[[0, j, 1]] for j in range(1, 8)]  # not the reference's
    assert found["said"].startswith("not yet. 6 devices: 5 rounds (3 are enough)")


@pytest.mark.parametrize("code, printed, said", [
    ("what is it", "line 1:  what is it\nNameError: name 'what' is not defined", ""),
    ("def f(:", "SyntaxError", ""),
    ("print(6 * 7)", "42\n", "no answer yet."),
    ("import os\nraise SystemExit", "SystemExit", ""),
    ("x = [0] * 10**15", "MemoryError", ""),
    ("print('x' * 10**6)", "… 1,000,001 characters", "no answer yet."),
    ("def broadcast(values, exchange): values[9]", "", "IndexError"),
])
def test_code_that_does_not_run_is_met_with_a_clear_word(desk, code, printed, said):
    found = desk(code)
    assert printed in found["printed"] and said in found["said"]
    assert bool(said) == bool(found["said"])


def test_of_much_that_is_printed_and_of_many_calls_both_ends_are_shown(desk):
    printed = desk("print('first', 'x' * 10**6)\n0 / 0")["printed"]
    assert printed.startswith("first xx")
    assert printed.endswith("line 2:  0 / 0\nZeroDivisionError: division by zero\n")
    printed = desk("def f(n):\n    return f(n + 1)\nf(0)")["printed"].splitlines()
    assert len(printed) == 8
    assert printed[:2] == ["line 3:  f(0)", "line 2:  return f(n + 1)"]
    assert printed[3].endswith(" more calls …")
    assert printed[-1].startswith("RecursionError: maximum recursion depth exceeded")


def test_a_page_without_the_engine_has_the_book_and_nothing_else(tmp_path, monkeypatch):
    monkeypatch.setattr(engine, "BROUGHT", Path("nowhere"))
    assert engine.lay(tmp_path) is False
    assert [path.name for path in (tmp_path / "lab").iterdir()] == ["pack.js"]


@in_node
def test_the_library_in_a_page_is_bytecode_of_the_same_modules():
    library = ENGINE / engine.PARTS["stdlib"]
    with zipfile.ZipFile(library) as sources:
        modules = {f"{name}c" if name.endswith(".py") else name
                   for name in sources.namelist()}
    with zipfile.ZipFile(io.BytesIO(engine.compiled(library))) as compiled:
        assert {*compiled.namelist()} == modules


def test_without_node_the_library_stays_as_it_is(tmp_path, monkeypatch):
    monkeypatch.setenv("PATH", "")
    library = tmp_path / "tools/engine/node_modules/pyodide/python_stdlib.zip"
    library.parent.mkdir(parents=True)
    library.write_bytes(b"sources")
    assert engine.compiled(library) == b"sources"


def test_a_file_that_needs_threads_or_mxnet_stays_in_the_notebook():
    assert not {"launching", "no_speed_up", "process_ring", "overlap"} & {*CHAPTERS}
    assert not pack.needed("exercisekit/clusters/launching.py")
