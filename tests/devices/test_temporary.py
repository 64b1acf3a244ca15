"""Temporary folders go with their process, whatever ends it."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from job_checks import nothing_left, wait_for  # noqa: F401

from d2l_ext import temporary
from d2l_ext.temporary import Folder

BEGIN = """
import os, signal, sys, time
from pathlib import Path
from d2l_ext.temporary import Folder, _sweeper
folders = [Folder("a-"), Folder("b-")]
Path(folders[0].name, "file").write_text("text")
"""
SAY = "print(*[folder.name for folder in folders], flush=True)\n"
WAIT = "time.sleep(100)\n"


def ended(code, signum=None):
    """Run a program that prints the names of its folders, and end it: the names."""
    words = [sys.executable, "-c", BEGIN + code]
    with subprocess.Popen(words, stdout=subprocess.PIPE, text=True) as process:
        names = process.stdout.readline().split()
        assert names, "it failed"
        if signum:
            assert all(map(os.path.isdir, names))
            process.send_signal(signum)
        process.communicate(timeout=20)
    return names


def gone(names):
    wait_for(lambda: not any(map(os.path.lexists, names)), 10)


def test_a_folder_is_its_owners_alone_and_goes_after_the_with(tmp_path):
    with Folder("prefix-") as name:
        assert Path(name).name.startswith("prefix-")
        assert os.stat(name).st_mode & 0o777 == 0o700
        Path(name, "file").write_text("text")
    assert not os.path.exists(name)


def test_a_folder_goes_with_its_object():
    folder = Folder()
    name = folder.name
    del folder
    assert not os.path.exists(name)


def test_a_job_that_ends_process_and_sweeper_alike_leaves_no_folder():
    code = SAY + "time.sleep(0.3)\nos.kill(_sweeper.process.pid, signal.SIGTERM)\n"
    gone(ended(code + "os.kill(os.getpid(), signal.SIGTERM)\n"))


@pytest.mark.parametrize("signum", [signal.SIGKILL, signal.SIGTERM, signal.SIGINT])
def test_a_killed_process_leaves_no_folder(signum):
    gone(ended(SAY + WAIT, signum))


@pytest.mark.parametrize("end", ["", "os._exit(3)", "raise ValueError('oh')"])
def test_a_process_that_ends_leaves_no_folder(end):
    gone(ended(SAY + "sys.stderr.close()\n" + end))


def test_a_killed_sweeper_has_a_successor_that_knows_all_folders():
    kill = "_sweeper.process.kill(); _sweeper.process.wait()\n"
    names = ended(kill + "folders.append(Folder('c-'))\n" + SAY + WAIT, signal.SIGKILL)
    assert len(names) == 3
    gone(names)


def test_a_forked_process_that_stays_keeps_no_folder_of_its_parents():
    """And has a sweeper of its own for those that it makes."""
    fork = ("if os.fork(): time.sleep(100)\n"
            "folders.append(Folder('child-'))\n" + SAY + "time.sleep(2)\n")  # fmt: skip
    names = ended(fork, signal.SIGKILL)
    assert not any(map(os.path.exists, names[:2]))
    gone(names)


def test_a_folder_into_which_somebody_writes_for_a_while_goes_too(tmp_path):
    folder = tmp_path / "busy"
    folder.mkdir()
    write = ("import sys, time, pathlib\nfor i in range(50):\n"
             "    pathlib.Path(sys.argv[1], str(i)).touch(); time.sleep(0.01)")
    with subprocess.Popen([sys.executable, "-c", write, str(folder)],
                          stderr=subprocess.DEVNULL):  # fmt: skip
        temporary.sweep([str(folder)])
    assert not folder.exists()


def test_what_cannot_be_removed_ends_the_sweeper_in_the_end(monkeypatch, tmp_path):
    (tmp_path / "file").touch()
    monkeypatch.setattr(temporary, "PATIENCE", 0.1)
    monkeypatch.setattr(temporary.shutil, "rmtree", lambda *_, **__: None)
    temporary.sweep([str(tmp_path)])
    assert (tmp_path / "file").exists()
