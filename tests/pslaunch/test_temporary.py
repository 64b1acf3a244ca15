"""Temporary folders go with their process, whatever ends it."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from job_checks import nothing_left, wait_for  # noqa: F401

from pslaunch import temporary
from pslaunch.temporary import SWEEP, Folder

BEGIN = """
import os, signal, sys, time
from pathlib import Path
from pslaunch.temporary import Folder, _sweepers
folders = [Folder("a-"), Folder("b-")]
Path(folders[0].name, "file").write_text("text")
"""
SAY = "print(*[folder.name for folder in folders], flush=True)\n"
WAIT = "time.sleep(100)\n"
TELL_ALL = """time.sleep(0.3)
for sweeper in _sweepers.values():
    sweeper.send_signal(signal.SIGTERM)
os.kill(os.getpid(), signal.SIGTERM)
"""
KILL_ONE = """
sweeper, _ = _sweepers.values()
sweeper.kill()
sweeper.wait()
folders.append(Folder("c-"))
"""
FORK = "if os.fork(): time.sleep(100)\nfolders.append(Folder('child-'))\n"


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


def test_a_folder_is_its_owners_alone_and_goes_with_its_block_or_its_object():
    with Folder("prefix-") as name:
        assert Path(name).name.startswith("prefix-")
        assert os.stat(name).st_mode & 0o777 == 0o700
        Path(name, "file").write_text("text")
    assert not os.path.exists(name)
    folder = Folder()
    name = folder.name
    del folder
    assert not os.path.exists(name)


GARBAGE = """
import gc, os
from pslaunch import temporary
class Owner: pass
owner = Owner()
owner.folder, owner.itself = temporary.Folder("a-"), owner
name, start = owner.folder.name, temporary._start_sweepers
del owner
temporary._start_sweepers = lambda: (gc.collect(), start())
with temporary.Folder("b-"):
    print(os.path.exists(name))
"""


def test_a_folder_may_be_garbage_while_another_is_made():
    """Python collects garbage in the middle of anything; the folder's job, say, is in
    a cycle with an exception."""
    done = subprocess.run([sys.executable, "-c", GARBAGE], check=True, text=True,
                          timeout=60, stdout=subprocess.PIPE)
    assert done.stdout == "False\n"


def test_a_folder_that_cannot_be_made_leaves_no_sweeper(tmp_path, monkeypatch):
    monkeypatch.setattr(temporary.tempfile, "tempdir", str(tmp_path / "none"))
    with pytest.raises(FileNotFoundError):
        Folder()
    assert not [name for name in temporary._sweepers if str(tmp_path) in name]


@pytest.mark.parametrize("code, signum", [
    *[(SAY + WAIT, signum) for signum in ("SIGKILL", "SIGTERM", "SIGINT")],
    *[(SAY + "sys.stderr.close()\n" + end, None)
      for end in ("", "os._exit(3)", "raise ValueError('oh')")],
    (SAY + TELL_ALL, None), (KILL_ONE + SAY + WAIT, "SIGKILL"),
])
def test_a_process_leaves_no_folder_however_it_ends(code, signum):
    """Nor when its sweepers are told to end too, or one of them was killed before."""
    names = ended(code, signum and getattr(signal, signum))
    assert len(names) == 2 + (KILL_ONE in code)
    wait_for(lambda: not any(map(os.path.lexists, names)), 10)


def test_a_forked_process_that_stays_keeps_no_folder_of_its_parents():
    """And has sweepers of its own for those that it makes."""
    names = ended(FORK + SAY + "time.sleep(2)\n", signal.SIGKILL)
    assert not any(map(os.path.exists, names[:2]))
    wait_for(lambda: not any(map(os.path.lexists, names)), 10)


def test_a_forked_process_that_ends_leaves_its_parents_folders():
    """Also when it lets go of them; its own are gone."""
    child = "if not os.fork(): del folders[0]; mine = Folder('child-'); sys.exit()\n"
    names = ended(child + "os.wait()\n" + SAY + WAIT, signal.SIGKILL)
    assert len(names) == 2  # which `ended` has seen
    wait_for(lambda: not any(map(os.path.lexists, names)), 10)


def test_a_folder_into_which_somebody_writes_for_a_while_goes_too(tmp_path):
    folder = tmp_path / "busy"
    folder.mkdir()
    write = ("import sys, time, pathlib\nfor i in range(50):\n"
             "    pathlib.Path(sys.argv[1], str(i)).touch(); time.sleep(0.01)")
    with subprocess.Popen([sys.executable, "-c", write, folder],
                          stderr=subprocess.DEVNULL):
        subprocess.run(["/bin/sh", "-c", SWEEP, folder], check=False, input=b"")
    assert not folder.exists()


def test_what_cannot_be_removed_ends_the_sweeper_in_the_end(tmp_path):
    (tmp_path / "rm").symlink_to("/bin/false")
    words = ["/bin/sh", "-c", SWEEP.replace("=600", "=3"), tmp_path]
    env = {"PATH": f"{tmp_path}:{os.defpath}"}
    subprocess.run(words, check=False, input=b"", env=env, timeout=20)
    assert (tmp_path / "rm").exists()
