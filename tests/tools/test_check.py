"""`make check` finds the tests that a change can reach, the nearest first."""

import json
import subprocess
import time
from functools import partial

import pytest
from job_checks import wait_for
from played_machine import GIT

import check


def commit(folder):
    """Make a repository of `folder`, with all that is in it."""
    for words in (["init", "-q"], ["add", "."], ["commit", "-qm", "all"]):
        subprocess.run([*GIT, *words], cwd=folder, check=True)


def test_what_was_edited_removed_or_moved_and_what_is_new_was_changed(tmp_path):
    for name in ("kept", "edited", "removed", "moved"):
        (tmp_path / name).write_text(f"{name}\n")
    commit(tmp_path)
    (tmp_path / "edited").write_text("new\n")
    (tmp_path / "new").touch()
    (tmp_path / "removed").unlink()
    subprocess.run([*GIT, "mv", "moved", "there"], cwd=tmp_path, check=True)
    assert check.changed(root=tmp_path) == [
        "edited", "moved", "new", "removed", "there"
    ]


def test_without_the_commit_or_a_repository_it_says_what_git_says(
    monkeypatch, capsys, tmp_path
):
    monkeypatch.setenv("LC_ALL", "C")
    monkeypatch.setenv("GIT_CEILING_DIRECTORIES", str(tmp_path.parent))
    subprocess.run([*GIT, "init", "-q", "there"], cwd=tmp_path, check=True)
    changed = check.changed
    for folder, words in (("there", "bad revision 'none'"), (".", "not a git repo")):
        asked = partial(changed, root=tmp_path / folder)
        monkeypatch.setattr(check, "changed", asked)
        assert check.main(["--since", "none"]) == 2
        assert words in capsys.readouterr().err


def test_a_lesson_reaches_its_own_tests_first_and_then_those_of_its_users():
    near, *far = check.reached(["d2l_ext/data_parallel/minibatch.py"])
    assert "tests/data_parallel/test_minibatch.py" in near
    later = {test for level in far for test in level}
    # Through the step, whose names the part gives away when they are asked for.
    assert {"tests/data_parallel/test_step.py",
            "tests/trainkit/test_replicas.py"} <= later
    assert not {"tests/data/test_text.py", "tests/pslaunch/test_door.py"} & later


@pytest.mark.parametrize(("file", "test"), [
    ("tests/data/test_text.py", "tests/data/test_text.py"),
    ("tests/helpers/idx_files.py", "tests/data/test_formats.py"),
    ("tools/house.py", "tests/book/test_house.py"),
    ("chapters/devices/devices.ipynb", "tests/book"),
    ("requirements/cpu.txt", "tests/tools/test_setup.py"),
    ("pyproject.toml", "tests/tools/test_wheel.py"),
    ("benchmarks/results/batches_10.json", "tests/benchmarks"),
    ("tests/conftest.py", "tests"),
])
def test_files_that_no_module_imports_reach_the_tests_that_read_them(file, test):
    assert any(test in level for level in check.reached([file]))


def test_a_module_that_is_gone_reaches_the_tests_of_those_that_import_it(tmp_path):
    for name, text in (("d2l_ext/user.py", "from .gone import f"),
                       ("tests/test_user.py", "from d2l_ext import user")):
        (tmp_path / name).parent.mkdir()
        (tmp_path / name).write_text(f"{text}\n")
    gone = ["d2l_ext/gone.py", "tests/test_gone.py"]
    assert check.reached(gone, tmp_path) == [["tests/test_user.py"]]


def test_a_page_of_text_reaches_no_test_of_the_library():
    assert check.reached(["LICENSE"]) == []


@pytest.fixture
def ran(monkeypatch):
    """What `main` runs, in order; words of it that are to fail."""
    seen, wrong = [], set()

    def fails(*words, seconds=1):
        if seconds:
            seen.append(words)
        return bool(wrong & set(words)) if seconds else None

    monkeypatch.setattr(check, "fails", fails)
    monkeypatch.setattr(check, "contracts", lambda: 0)
    monkeypatch.setattr(check, "changed", lambda since: ["a.py", "chapters/a.ipynb"])
    monkeypatch.setattr(check, "code_changed", lambda file, since: True)
    monkeypatch.setattr(check.made_by, "stale", lambda root, paths: {"b.ipynb": ["x"]})
    monkeypatch.setattr(check.stored, "stale", lambda: ["one", "two"])
    monkeypatch.setattr(check, "reached", lambda files: [["near"], ["far"]])
    return seen, wrong


def test_a_chapter_of_which_only_the_words_were_changed_is_not_run(tmp_path):
    def write(text, code, **metadata):
        cells = [{"cell_type": "markdown", "source": text},
                 {"cell_type": "code", "source": code, "metadata": metadata,
                  "outputs": []}]
        (tmp_path / "a.ipynb").write_text(json.dumps({"cells": cells}))

    write("Typo", "1")
    commit(tmp_path)
    write("No typo", "1")
    assert not check.code_changed("a.ipynb", root=tmp_path)
    write("No typo", "1  # a comment", mystnb={"figure": {"caption": "no typo"}})
    assert not check.code_changed("a.ipynb", root=tmp_path)
    for code, tags in (("2", []), ("1", ["raises-exception"]), ("1 +", [])):
        write("No typo", code, tags=tags)
        assert check.code_changed("a.ipynb", root=tmp_path)
    (tmp_path / "new.ipynb").touch()
    assert check.code_changed("new.ipynb", root=tmp_path)
    (tmp_path / "a.ipynb").unlink()
    assert not check.code_changed("a.ipynb", root=tmp_path)


def test_of_a_module_in_which_only_comments_were_changed_no_test_is_run(tmp_path):
    file = tmp_path / "a.py"
    file.write_text('"""Words."""\nx = 1  # one word\n')
    commit(tmp_path)
    file.write_text('"""Words."""\nx = 1  # another\n')
    assert check.only_comments_changed("a.py", root=tmp_path)
    for other in ('"""Other words."""\nx = 1\n', '"""Words."""\nx = 2\n', "x = "):
        file.write_text(other)
        assert not check.only_comments_changed("a.py", root=tmp_path)
    (tmp_path / "new.py").touch()
    assert not check.only_comments_changed("new.py", root=tmp_path)
    file.unlink()
    assert not check.only_comments_changed("a.py", root=tmp_path)


def test_a_stale_chapter_is_named_stale_results_are_counted_and_both_are_no_fault(
    ran, capsys
):
    assert check.main([]) == 0
    said = capsys.readouterr().out
    assert "stale: 1 chapter (make rerun STALE=1)\n  b.ipynb: x changed" in said
    assert "stale: 2 results (python -m bookkit.stored --stale)" in said


def test_style_comes_first_then_near_tests_then_far_ones_then_chapters(ran):
    assert check.main([]) == 0
    assert [words[-1] for words in ran[0]] == [
        ".", "codespell_lib", "near", "far", "chapters/a.ipynb", "--stale",
    ]


@pytest.mark.parametrize("word", ["ruff", "codespell_lib", "near", "chapters/a.ipynb"])
def test_whatever_fails_fails_the_check(ran, word):
    ran[1].add(word)
    assert check.main([]) == 1


def test_what_is_left_when_the_time_is_over_is_named(ran, capsys):
    assert check.main(["--seconds", "0"]) == 0
    assert "near" not in [words[-1] for words in ran[0]]
    assert capsys.readouterr().out.count("not finished in time: ") == 2


@pytest.fixture
def bare(monkeypatch):
    """Plugins of pytest take a second each."""
    monkeypatch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")


def test_a_program_that_takes_longer_than_it_may_is_ended(bare, tmp_path):
    (tmp_path / "test_long.py").write_text("import time\ndef test(): time.sleep(60)\n")
    begin = time.monotonic()
    assert check.fails("pytest", "-q", str(tmp_path), seconds=3) is None
    assert time.monotonic() - begin < 30
    assert check.fails("this", seconds=60) == 0  # a module that is there


def test_a_test_that_failed_before_the_time_was_over_is_a_failure(
    bare, tmp_path, monkeypatch
):
    class UntilTheSecondTest(subprocess.Popen):
        def wait(self, timeout=None):
            if timeout is None:
                return super().wait()
            wait_for((tmp_path / "second").exists)
            raise subprocess.TimeoutExpired(self.args, timeout)

    (tmp_path / "test_both.py").write_text(
        "import pathlib, time\ndef test_first(): assert 0\ndef test_second():\n"
        f"    pathlib.Path({str(tmp_path)!r}, 'second').touch()\n    time.sleep(60)\n")
    monkeypatch.setattr(subprocess, "Popen", UntilTheSecondTest)
    assert check.fails("pytest", "-q", str(tmp_path), seconds=1) == 1
