"""make book, make rerun and make html, on books of a few cells."""

import io
import json
import os
import re
import shutil
import signal
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import nbformat
import pytest
from job_checks import wait_for
from nbformat import v4
from played_machine import GIT

import book as tool
import notebooks
import outcome
import rerun
import sources


class Book:
    """A book in a git repository: `chapters` maps names to lists of cells."""

    def __init__(self, root, **chapters):
        self.root = root
        self.work = root / "_build" / "book"
        (root / "chapters").mkdir(parents=True)
        (root / "d2l_ext").mkdir()
        self.write("d2l_ext/__init__.py", "")
        self.write("_config.yml", 'title: A book\nexecute: {execute_notebooks: "off"}')
        files = "".join(f"\n- file: chapters/{name}" for name in chapters)
        self.write("_toc.yml", f"format: jb-book\nroot: intro\nchapters:{files}\n")
        self.write("intro.md", "# Introduction\n")
        self.write(".gitignore", "/_build/\n__pycache__/\n")
        for name, cells in chapters.items():
            self.set(name, cells)
        self.git("init", "-q")
        self.git("add", ".")
        self.git("commit", "-qm", "all")

    def write(self, name, text):
        (self.root / name).write_text(text)

    def set(self, name, cells):
        """Write chapter `name`: a cell that starts with # is text, else code."""
        nb = v4.new_notebook(cells=[_cell(i, c) for i, c in enumerate(cells)])
        notebooks.normalise(nb)
        nbformat.write(nb, self.root / "chapters" / f"{name}.ipynb")

    def git(self, *arguments):
        command = [*GIT, *arguments]
        done = subprocess.run(
            command, cwd=self.root, check=True, capture_output=True, text=True
        )
        return done.stdout

    def rerun(self, *words):
        """Store its outputs, without a process."""
        return rerun.main(["--root", str(self.root), *words])

    def call(self, *words):
        """Call the tool for this book, without a process."""
        return tool.main(["--root", str(self.root), *words])

    def start(self, **variables):
        """Start the tool, to execute this book."""
        command = [sys.executable, tool.__file__, "--root", self.root, "execute"]
        pipe, environ = subprocess.PIPE, {**os.environ, **variables}
        return subprocess.Popen(
            command, stdout=pipe, stderr=pipe, text=True, env=environ
        )

    def execute(self, timeout=600):
        """Execute without rendering; return the outputs of the code cells."""
        sources.copy_sources(self.root, self.work)
        none = SimpleNamespace(begin=lambda *_: None, follow=lambda: None)
        none.end = none.follow
        _, outcomes = tool.execute_book(self.root, self.work, timeout, none)
        self.errors = [one.error for one in outcomes if one.error]
        return self.outputs("one", self.work)

    def outputs(self, name, root=None):
        path = (root or self.root) / "chapters" / f"{name}.ipynb"
        code = notebooks.code_cells(nbformat.read(path, as_version=4))
        return [[_shown(output) for output in cell.outputs] for cell in code]


def _cell(number, content):
    source, tags = content if isinstance(content, tuple) else (content, [])
    if source.startswith("#"):
        return v4.new_markdown_cell(source, id=f"cell{number}")
    return v4.new_code_cell(source, id=f"cell{number}", metadata={"tags": list(tags)})


def _shown(output):
    if output.output_type == "stream":
        return output.text
    if output.output_type == "error":
        return output.ename
    return output.data["text/plain"]


@pytest.fixture
def counted(tmp_path):
    """A cell that notes each of its executions, and a function that counts them."""
    record = tmp_path / "record"

    def count():
        return record.read_text().count("ran") if record.exists() else 0

    return f"open({str(record)!r}, 'a').write('ran')", count


@pytest.fixture
def make(tmp_path):
    """A function that makes the book of the chapters given."""
    return lambda **chapters: Book(tmp_path / "book", **chapters)


# The whole of make book


FINDING = """
from bookkit.findings import tell
_ = tell("Half of six is", lambda half: half == 4, lambda: 3, tries=1)
"""


@pytest.fixture(scope="module")
def story(tmp_path_factory):
    """What `make book` said and left: stopped in the second of three chapters; again,
    with a second that fails and a third with a finding that does not hold; and again,
    without the failure."""
    folder = tmp_path_factory.mktemp("story")
    note = f"open({str(folder / 'pid')!r}, 'w').write(str(os.getpid()))"
    waits = f"import os, time\n{note}\ntime.sleep(600)"
    book = Book(folder / "book", one=["# One", "print(6 * 7, 'so')"],
                two=["# Two", waits], three=["# Three", FINDING])
    pages = book.root / "_build/html/chapters"
    told = SimpleNamespace(book=book, other=folder / "other")
    told.stored = (book.root / "chapters/one.ipynb").read_bytes()
    process, page = book.start(), pages / "one.html"
    is_shown = "stored with the book"
    wait_for(lambda: page.exists() and is_shown in page.read_text(), 600)
    wait_for(lambda: (folder / "pid").exists() and (folder / "pid").read_text(), 600)
    process.send_signal(signal.SIGINT)
    told.stopped = (*process.communicate(timeout=600), process.returncode)
    told.was_there, told.pid = page.exists(), int((folder / "pid").read_text())
    book.set("two", ["# Two\n\nWhy?\n\nMore.", "x = 0", "y = 1 \n1 / x", "3"])
    # What a shell may have is for an author's run, and not for this one.
    elsewhere = {"D2L_EXT_RECORDING": "1", "D2L_EXT_FINDINGS": str(told.other)}
    process = book.start(**elsewhere)
    told.failed = (*process.communicate(timeout=600), process.returncode)
    told.log = (book.root / "_build/two.log").read_text()
    told.pages = {page.stem: page.read_text() for page in pages.glob("*.html")}
    book.set("two", ["# Two", "'well'"])
    process = book.start()
    told.again = (*process.communicate(timeout=600), process.returncode)
    return told


def test_the_book_can_be_read_before_its_chapters_run(story):
    out, err, code = story.stopped
    assert code == 130 and "the next run goes on" in err
    index = story.book.root / "_build/html/index.html"
    assert out.startswith(f"The book can be read: {index}")
    assert "Chapters that run here now: 3" in out and story.was_there


def test_control_c_ends_the_kernel_and_says_that_it_stopped(story):
    assert "Stopped." in story.stopped[1]
    assert "The kernel died" not in story.stopped[1]
    with pytest.raises(ProcessLookupError):
        os.kill(story.pid, 0)


def test_the_next_run_goes_on_and_leaves_the_checkout_as_it_was(story):
    assert "chapters/one.ipynb  unchanged" in story.failed[0]
    page = story.pages["one"]
    assert "made on this machine" in page and "42 so" in page
    assert (story.book.root / "chapters/one.ipynb").read_bytes() == story.stored
    status = story.book.git("status", "--porcelain")
    assert status == " M chapters/two.ipynb\n"


def test_a_chapter_that_fails_keeps_its_stored_page_which_says_what_happened(story):
    page = story.pages["two"]
    assert "The outputs on this page were stored with the book." in page
    assert "This chapter failed on this machine" in page
    assert "ZeroDivisionError: division by zero" in page
    assert page.index("Why?") < page.index("This chapter failed") < page.index("More.")
    # The note leads to another, above the cell.
    assert page.count('href="#stopped-here-two"') == 1
    assert page.index("This cell failed") > page.index('id="stopped-here-two"')


def test_the_other_chapters_run_and_the_end_lists_what_failed(story):
    out, err, code = story.failed
    assert code == 1
    assert "    1 / x\n" in err and "Traceback" not in err
    assert "chapter 2 of 3  chapters/two.ipynb  failed" in out
    end = out.partition("2 of 3 chapters have run on this machine: ")[2]
    assert "One chapter failed" in end
    assert ("  chapters/two.ipynb, code cell 2; see _build/two.log\n"
            "    ZeroDivisionError: division by zero\n`make book` runs such") in end
    assert "1 / x" in story.log and "ZeroDivisionError" in story.log


def test_a_finding_that_does_not_hold_is_told_on_its_page_and_at_the_end(story):
    page = story.pages["three"]
    assert "One finding did not hold on this machine" in page
    assert "Not as on the machine that recorded this page: Half of six is 3" in page
    assert "made on this machine" in page and not story.other.exists()
    assert "did not hold" not in story.pages["one"]
    listed = "  chapters/three.ipynb\n    Half of six is 3\n"
    assert listed in story.failed[0]


def test_a_finding_is_no_error_and_is_told_again_when_nothing_has_run(story):
    out, err, code = story.again
    assert (code, err) == (0, "")
    assert "chapters/three.ipynb  unchanged" in out
    index = story.book.root / "_build/html/index.html"
    assert f"Every chapter has run on this machine: {index}" in out
    assert "  chapters/three.ipynb\n    Half of six is 3\n" in out + "\n"


@pytest.mark.parametrize("text", ["`` a ``` b", "::: $x^2$ {doc}`no` <b>", "a\nb"])
def test_no_character_of_an_error_ends_its_block_on_the_page(text):
    nb = v4.new_notebook(cells=[_cell(0, "# One"), _cell(1, "1")])
    error = notebooks.ChapterError(text, text, 1)
    one = Path("chapters/one.ipynb")
    note = outcome.say_from_where(nb, outcome.Outcome(one, error)).cells[0].source
    block = re.compile(r"^(`+)text\n(.*)\n\1$", re.MULTILINE | re.DOTALL)
    fence, said = block.search(note).groups()
    assert said == text and fence not in text


def test_a_cell_that_takes_too_long_or_dies_suggests_what_helps():
    for first_line, helps in (("It ran for more than 1 seconds.", "--timeout 3600"),
                              ("The kernel died. Its", "out of memory")):
        error = notebooks.ChapterError("", first_line, 1)
        assert helps in outcome.Outcome(Path("one.ipynb"), error).what_to_do()


def test_a_chapter_for_which_a_machine_has_too_few_cores_is_no_error():
    error = notebooks.ChapterError("", "TooFewCores: cpu(3) cannot be recorded", 2)
    one = outcome.Outcome(Path("chapters/one.ipynb"), error)
    said = outcome.summary([one], "page")
    assert "need more cores than this machine has" in said and "failed" not in said
    nb = v4.new_notebook(cells=[_cell(0, "# One"), _cell(1, "1"), _cell(2, "2")])
    note = outcome.say_from_where(nb, one).cells[0].source
    assert "too few cores for this chapter" in note and "cpu(3)" in note


def test_there_are_whole_pages_at_any_moment(tmp_path, monkeypatch):
    made, shown = tmp_path / "made", tmp_path / sources.PAGES
    made.mkdir()
    (made / "index.html").write_text("first")
    monkeypatch.setattr(sources.engine, "lay", lambda pages: None)  # it takes a second
    sources.publish(tmp_path, made)
    (made / "index.html").write_text("second")
    seen = []

    def copytree(source, target):
        shutil.copyfile(source / "index.html", target.parent / "half")
        seen.append((shown / "index.html").read_text())
        raise KeyboardInterrupt

    with monkeypatch.context() as during, pytest.raises(KeyboardInterrupt):
        during.setattr(sources.shutil, "copytree", copytree)
        sources.publish(tmp_path, made)
    assert seen == ["first"] and (shown / "index.html").read_text() == "first"
    assert sources.publish(tmp_path, made).read_text() == "second"
    assert [path.name for path in shown.parent.iterdir() if path.is_dir()] == ["html"]


def test_a_chapter_says_from_which_machine_its_stored_outputs_are():
    nb = v4.new_notebook(cells=[_cell(0, "# One"), _cell(1, "provenance()")])
    line = "Run on 2 May 2026 at commit abc, with MXNet 1.9.1, on AMD EPYC with 2 cores"
    data = {"text/plain": line}
    nb.cells[1].outputs = [v4.new_output("execute_result", data)]
    text = outcome.say_from_where(nb).cells[0].source
    assert text.endswith("were stored with the book, on 2 May 2026 on AMD EPYC.*")


def test_a_chapter_that_writes_into_the_checkout_is_noticed(make, monkeypatch, capsys):
    writes = "_ = open('../../../intro.md', 'a').write('x')"
    book = make(one=[writes])
    monkeypatch.setattr(tool.Pages, "end", lambda self, **_: "page")
    assert book.call("execute") == 1
    assert "These files changed while the book was made: intro.md." in (
        capsys.readouterr().err
    )


# What is executed again, and what is not


def test_edited_text_appears_and_executes_nothing_and_edited_code_is_executed(
    make, counted
):
    cell, count = counted
    book = make(one=["# Title\n\nBefore.", f"_ = {cell}", "6 * 7"])
    assert book.execute() == [[], ["42"]]
    book.set("one", ["# Title\n\nAfter.", f"_ = {cell}", "6 * 7"])
    assert book.execute() == [[], ["42"]]
    nb = nbformat.read(book.work / "chapters/one.ipynb", as_version=4)
    said = "# Title\n\nAfter.\n\n*The outputs on this page were made on this machine.*"
    assert (nb.cells[0].source, count()) == (said, 1)
    book.set("one", ["# Title\n\nAfter.", f"_ = {cell}", "6 * 8"])
    assert book.execute() == [[], ["48"]]
    assert count() == 2


def test_another_tag_name_or_machine_is_not_known_nor_is_a_file_that_was_cut_off(
    tmp_path
):
    plain = v4.new_notebook(cells=[_cell(0, "1")])
    tagged = v4.new_notebook(cells=[_cell(0, ("1", ["claim-S1"]))])
    store = notebooks.Cache(tmp_path, "here")
    store.keep(Path("one.ipynb"), plain)
    assert store.recall(Path("one.ipynb"), plain)
    assert not store.recall(Path("one.ipynb"), tagged)
    assert not store.recall(Path("two.ipynb"), plain)
    assert not notebooks.Cache(tmp_path, "there").recall(Path("one.ipynb"), plain)
    (file,) = tmp_path.iterdir()
    file.write_text(file.read_text()[:-1])
    assert not store.recall(Path("one.ipynb"), plain)


CHANGES = {
    "the library": lambda book, patch: book.write("d2l_ext/__init__.py", "x = 1\n"),
    "a drawing": lambda book, patch: book.write("d2l_ext/figure.js", "x = 1\n"),
    "its style": lambda book, patch: book.write("d2l_ext/figure.css", "a { }\n"),
    "a result": lambda book, patch: book.write("d2l_ext/result.json", "{}\n"),
    "a variable": lambda book, patch: patch.setenv("D2L_EXT_TRY", "1"),
    "a package": lambda _, patch: patch.setattr(
        notebooks.metadata, "distributions", list
    ),
    "the cores": lambda book, patch: patch.setattr(notebooks, "cores", lambda: 1000),
    "the GPUs": lambda book, patch: patch.setattr(notebooks, "_gpus", lambda: "A10"),
}


@pytest.mark.parametrize("change", CHANGES)
def test_a_change_of_what_chapters_depend_on_is_noticed_and_no_other(
    make, monkeypatch, change
):
    book = make(one=["1"])
    before = notebooks.surroundings(book.root)
    book.write("intro.md", "# Other\n")
    monkeypatch.setenv("UNRELATED", "1")
    assert notebooks.surroundings(book.root) == before
    CHANGES[change](book, monkeypatch)
    assert notebooks.surroundings(book.root) != before


# How a chapter is executed


def test_a_chapter_runs_in_its_folder_shows_expected_errors_and_leaves_no_kernel(make):
    shown = "import os, sys\nprint(os.getcwd(), sys.executable, os.getpid(), sep='\\n')"
    book = make(one=[("1 / 0", ["raises-exception"]), shown])
    error, (printed,) = book.execute()
    folder, python, pid = printed.splitlines()
    assert error == ["ZeroDivisionError"]
    assert (folder, python) == (str(book.work / "chapters"), sys.executable)
    with pytest.raises(ProcessLookupError):
        os.kill(int(pid), 0)


def test_outputs_hold_neither_messages_of_c_code_nor_warnings_a_reader_turned_on(
    make, monkeypatch
):
    noisy = "import os, warnings\n_ = os.system('echo from C; echo from C >&2')\n"
    noisy += "warnings.warn('old', PendingDeprecationWarning)\nprint('result')"
    book = make(one=[noisy])
    # The kernel does not look for messages of C code when it sees that pytest runs.
    monkeypatch.delenv("PYTEST_CURRENT_TEST")
    # Set here, so that what prepare_environment does is undone after the test.
    monkeypatch.setenv("PYTHONWARNINGS", "always")
    monkeypatch.setenv("PYDEVD_DISABLE_FILE_VALIDATION", "")
    notebooks.prepare_environment()
    assert book.execute() == [["result\n"]]


def test_control_c_is_not_lost_between_two_cells(make, tmp_path, monkeypatch):
    """As a cell ends, asyncio may swallow a cancellation; here it always does."""
    second = tmp_path / "second"
    first = f"import os, signal\nos.kill({os.getpid()}, signal.SIGINT)"
    book = make(one=[first, f"open({str(second)!r}, 'w')"])
    keep = SimpleNamespace(cancel=lambda: None)
    monkeypatch.setattr(notebooks.asyncio, "current_task", lambda: keep)
    with pytest.raises(KeyboardInterrupt):
        book.execute()
    assert not second.exists()


# What it says stands so in the log alone, not in its source, which is shown as well.
DIES = "import os\n_ = os.system('echo lib${NO}gomp is missing >&2')\nos._exit(3)"


@pytest.mark.parametrize(
    "cell, timeout, said",
    [(DIES, 60, ["The kernel died", "libgomp is missing"]),
     ("import time\ntime.sleep(60)", 1, ["It ran for more than 1 seconds."])],
    ids=["dies", "does not end"],
)
def test_a_cell_that_ends_its_kernel_or_never_ends_is_named_with_what_is_known(
    make, cell, timeout, said
):
    book = make(one=["1", cell])
    book.execute(timeout)
    (error,) = book.errors
    for words in ("chapters/one.ipynb, code cell 2", *said):
        assert words in str(error)


def test_a_kernel_that_does_not_start_fails_its_chapter_and_no_other(
    make, monkeypatch
):
    begin = tool.run_chapter

    def without_a_library(root, work, path, progress, timeout, variables):
        if path.stem == "one":
            variables = {**variables, "PYTHONHOME": "/nowhere"}
        return begin(root, work, path, progress, timeout, variables)

    monkeypatch.setattr(tool, "run_chapter", without_a_library)
    book = make(one=["1"], two=["6 * 7"])
    book.execute(timeout=60)
    (error,) = book.errors
    for words in ("chapters/one.ipynb", "The kernel did not start", "'/nowhere'"):
        assert words in str(error)
    assert book.outputs("two", book.work) == [["42"]]


# make rerun


def test_rerun_stores_an_authors_run_and_leaves_out_what_changes_by_chance(make):
    cells = ["# Title", "print(1, flush=True)\nimport os\nprint(2)\ndisplay(3)\n4",
             "os.environ['D2L_EXT_RECORDING']"]
    book = make(one=cells, two=["4"])
    assert book.rerun("chapters/one.ipynb") == 0
    nb = nbformat.read(book.root / "chapters/one.ipynb", as_version=4)
    assert book.outputs("one") == [["1\n2\n", "3", "4"], ["'1'"]]
    assert [c.execution_count for c in notebooks.code_cells(nb)] == [1, 2]
    assert [cell.id for cell in nb.cells] == ["cell0", "cell1", "cell2"]
    assert nb.metadata.pop("made_by")["outputs"].keys() == {"cell1", "cell2"}
    assert nb.metadata == {
        "kernelspec": {
            "display_name": "Python 3",
            "language": "python",
            "name": "python3",
        },
        "language_info": {"name": "python"},
    }
    assert book.git("status", "--porcelain") == " M chapters/one.ipynb\n"


PICTURE = ("import IPython, os\n"
           "IPython.display.Image(b'\\x89PNG\\r\\n' + os.urandom(9), format='png')")
TIME = ("import time\nf'at {time.time_ns()}'", ["nbval-ignore-output"])


@pytest.fixture(scope="module")
def recorded(tmp_path_factory):
    """The file of a chapter of a time, a picture and a letter, and its text."""
    root = tmp_path_factory.mktemp("recorded") / "book"
    assert Book(root, one=[TIME, PICTURE, "print('a')"]).rerun() == 0
    file = root / "chapters/one.ipynb"
    return file, file.read_text()


@pytest.fixture
def stored(recorded):
    """A function: what a rerun makes of the chapter, with words in it for others."""
    file, first = recorded

    def rerun_it(*words, edit=("", ""), text=first):
        assert edit[0] in text
        file.write_text(text.replace(*edit))
        assert rerun.main(["--root", str(file.parents[1]), *words]) == 0
        return file.read_text()

    return rerun_it


def test_rerun_leaves_times_and_pictures_unless_it_is_told_to_store_them(
    recorded, stored
):
    assert stored() == recorded[1]
    fresh = stored("--fresh")
    assert fresh != recorded[1] and stored(text=fresh) == fresh


def test_rerun_stores_only_what_is_compared_and_has_changed(recorded, stored):
    assert stored(edit=('"a\\n"', '"b\\n"')) == recorded[1]


def test_rerun_does_not_keep_a_time_that_was_written_by_hand(stored):
    assert "at noon" not in stored(edit=("'at 1", "'at noon, 1"))


def test_rerun_stores_the_whole_chapter_when_a_cell_is_another(recorded, stored):
    first = json.loads(recorded[1])
    new = json.loads(stored(edit=("print('a')", "print('c')")))
    for old_cell, new_cell in zip(first["cells"], new["cells"]):
        assert old_cell["outputs"] != new_cell["outputs"]


def test_rerun_knows_which_chapters_are_stale_and_runs_these(make, capsys):
    here = "import sys\nsys.path.insert(0, '..')\n"
    book = make(one=[f"{here}import d2l_ext.a\nd2l_ext.a.f()"], two=["2"])
    book.write("d2l_ext/a.py", "def f():\n    return 1\n")
    assert book.rerun() == 0 and book.rerun("--list") == 0
    two = (book.root / "chapters/two.ipynb").read_bytes()
    book.write("d2l_ext/a.py", "def f():\n    return 2\n")
    capsys.readouterr()
    assert book.rerun("--list") == 1
    assert capsys.readouterr().out.splitlines() == [
        "stale: 1 chapter (make rerun STALE=1)",
        "  chapters/one.ipynb: d2l_ext.a changed",
    ]
    assert book.rerun("--stale") == 0
    assert book.outputs("one") == [["2"]]
    assert (book.root / "chapters/two.ipynb").read_bytes() == two
    assert book.rerun("--list") == 0


def test_rerun_leaves_a_chapter_that_fails_as_it_was(make, capsys):
    book = make(one=["print(1)", "undefined"])
    assert book.rerun() == 1
    assert "NameError: name 'undefined' is not defined" in capsys.readouterr().err
    assert book.git("status", "--porcelain") == ""


@pytest.mark.parametrize("name", ["chapters/none.ipynb", "intro.md", "../one.ipynb"])
def test_rerun_refuses_what_is_no_chapter(make, tmp_path, name, capsys):
    book = make(one=["1"])
    (tmp_path / "one.ipynb").touch()
    assert book.rerun(name) == 1
    assert f"{name} is not a notebook of this book" in capsys.readouterr().err


def test_what_an_editor_wrote_of_the_time_of_a_run_is_not_stored():
    cell = _cell(0, "1")
    cell.metadata.execution = {"iopub.execute_input": "2026"}
    notebooks.normalise(v4.new_notebook(cells=[cell]))
    assert cell.metadata == {"tags": []}


# make html


def test_html_shows_stored_outputs_and_executes_nothing(make, counted, capsys):
    cell, count = counted
    book = make(one=["# Title", f"_ = {cell}"])
    assert book.call("render") == 0, capsys.readouterr()
    assert count() == 0
    assert (book.root / "_build/html/chapters/one.html").exists()

    # A page of an earlier run must not hide that its chapter is gone, or broken.
    book.set("one", ["# Title\n\n![a picture](img/missing.svg)"])
    assert book.call("render") == 1
    err = capsys.readouterr().err
    assert "missing.svg" in err
    assert "chapters/one.ipynb" in err


# The parts


def test_chapters_come_in_the_order_of_the_table_of_contents(make):
    book = make(one=["1"], two=["2"], three=["3"])
    book.write(
        "_toc.yml",
        """
format: jb-book
root: intro
parts:
- caption: First
  chapters:
  - file: chapters/two
    sections:
    - file: chapters/three.ipynb
- caption: Second
  chapters:
  - file: chapters/one
  - url: https://example.org
""",
    )
    names = [path.stem for path in notebooks.chapters(book.root)]
    assert names == ["two", "three", "one"]


def test_a_chapter_that_does_not_exist_is_named(make):
    book = make(one=["1"])
    (book.root / "chapters/one.ipynb").unlink()
    with pytest.raises(FileNotFoundError, match="_toc.yml names chapters/one"):
        notebooks.chapters(book.root)


def test_the_copy_holds_the_sources_and_nothing_old(make):
    book = make(one=["1"])
    book.write("new.md", "not yet added")
    (book.root / "_build").mkdir()
    book.write("_build/result.html", "")
    book.work.mkdir()
    (book.work / "stale.md").touch()
    sources.copy_sources(book.root, book.work)
    copied = {p.relative_to(book.work) for p in book.work.rglob("*") if p.is_file()}
    assert {"intro.md", "new.md"} <= {str(p) for p in copied}
    assert not {"stale.md", "_build/result.html"} & {str(p) for p in copied}

    with_git = copied - {Path(".gitignore")}
    subprocess.run(["rm", "-r", book.root / ".git"], check=True)
    assert set(sources.source_files(book.root)) == with_git | {Path(".gitignore")}


def test_every_change_of_the_checkout_is_a_difference(make):
    book = make(one=["1"])
    book.write("intro.md", "edited")
    before = sources.state(book.root)
    assert sources.differences(before, sources.state(book.root)) == []
    book.write("intro.md", "edited again")
    book.write("new.md", "")
    (book.root / "_toc.yml").unlink()
    changed = sources.differences(before, sources.state(book.root))
    assert changed == ["_toc.yml", "intro.md", "new.md"]


def test_progress_is_one_line_a_chapter_and_moves_on_a_terminal():
    def shown(terminal):
        stream = io.StringIO()
        stream.isatty = lambda: terminal
        progress = tool.Progress(2, stream)
        progress.start("one.ipynb")
        progress.cell(3, 4)
        progress.end()
        progress.start("two.ipynb")
        progress.end("unchanged")
        return stream.getvalue()

    plain = shown(terminal=False).splitlines()
    assert plain[0].startswith("chapter 1 of 2  one.ipynb  0.")
    assert plain[1:] == ["chapter 2 of 2  two.ipynb  unchanged"]
    assert "\rchapter" not in shown(terminal=False)
    assert "cell 3 of 4" in shown(terminal=True)
