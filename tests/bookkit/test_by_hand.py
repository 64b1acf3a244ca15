"""Processes that are started by hand end with their block, or by their alarm."""

import os
import signal
import subprocess
import sys
import time
import uuid

import pytest

from bookkit import by_hand
from bookkit.by_hand import Processes, kill, marked

FOR_EVER = "while True: pass"


def test_a_process_prints_into_its_log_and_gets_arguments_and_no_other_jobs_variables(
    monkeypatch
):
    monkeypatch.setenv("DMLC_RANK", "3")
    monkeypatch.setenv("PS_VERBOSE", "2")
    code = """import os, sys
print(sys.argv[1:], {x: os.environ[x] for x in os.environ if x[:3] in ("DML", "PS_")})
"""
    with Processes() as processes:
        processes.start("a", code, "x y", "$(z)", DMLC_ROLE="server")
        assert processes.wait_for(lambda: not processes.running())
        assert processes.output("a") == "['x y', '$(z)'] {'DMLC_ROLE': 'server'}\n"
        assert processes.codes() == {"a": 0}


def test_leaving_the_block_ends_what_runs_also_after_an_error():
    with pytest.raises(KeyError), Processes() as processes:
        for name in "ab":
            processes.start(name, f"print(1)\n{FOR_EVER}")
        assert processes.wait_for_output("b", "1")
        raise KeyError
    assert processes.codes() == {"a": -signal.SIGKILL, "b": -signal.SIGKILL}


def test_the_name_of_a_process_that_runs_is_refused_and_may_be_taken_after_its_end():
    with Processes() as processes:
        processes.start("a", FOR_EVER)
        first = processes.started["a"]
        with pytest.raises(ValueError, match="'a' still runs: give this process"):
            processes.start("a", "")
        first.kill()
        assert processes.wait_for(lambda: not processes.running())
        processes.start("a", "print(2)")
        assert processes.wait_for_output("a", "2")
    assert first.returncode == -signal.SIGKILL


def test_a_process_that_is_forgotten_ends_itself():
    with Processes(seconds=1) as processes:
        processes.start("a", FOR_EVER)
        processes.seconds = 20
        assert processes.wait_for(lambda: not processes.running())
        assert processes.codes() == {"a": -signal.SIGALRM}


def test_waiting_has_an_end():
    start = time.monotonic()
    assert not Processes(seconds=0.2).wait_for(lambda: False)
    assert 0.2 <= time.monotonic() - start < 10


def test_marked_processes_are_found_with_their_roles_and_ended_by_their_ids():
    mark = uuid.uuid4().hex
    with Processes() as processes:
        processes.start("a", FOR_EVER, MARK=mark, DMLC_ROLE="server")
        processes.start("b", FOR_EVER, MARK=mark)
        processes.start("c", FOR_EVER, MARK=mark + "1")
        ids = {name: p.pid for name, p in processes.started.items()}
        assert processes.wait_for(lambda: len(marked("MARK", mark)) == 2)
        assert marked("MARK", mark) == {ids["a"]: "server", ids["b"]: None}
        assert kill(marked("MARK", mark)) == []
        assert marked("MARK", mark) == {} and processes.running() == ["c"]


def test_ending_what_has_ended_is_no_error_and_what_stays_is_told(monkeypatch):
    with subprocess.Popen([sys.executable, "-c", ""]) as process:
        pass
    assert kill([process.pid]) == kill([process.pid], seconds=0) == []
    monkeypatch.setattr(by_hand.os, "kill", lambda *_: None)
    assert kill([os.getpid()], seconds=0.1) == [os.getpid()]
