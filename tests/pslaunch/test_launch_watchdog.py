"""The launcher and its watchdog: neither is needed to end what a job has started."""

import d2l_ext  # noqa: F401, I001
import json
import os
import re
import signal
import subprocess
import time
from types import SimpleNamespace

import pytest
from job_checks import (  # noqa: F401
    CLI, PYTHON, alive, command, nodes_of, nothing_left, sleeping, wait_for,
)

import pslaunch as launch
from pslaunch import processes, runner, supervise
from pslaunch.job import Failed, Process

#: Seconds from a fault to the end of the job.
BOUND = 10
#: A daemon that hides: no variables, no parent, a session of its own.
HIDE = f"setsid env -i sleep {10**6 + os.getpid()}"
HIDES = f"({HIDE} &); echo begun; "


def hidden():
    """The daemons of this test, which have not its mark."""
    return sleeping(10**6 + os.getpid())


def watchdog_of(launcher):
    """The process id of a launcher's watchdog, once there is one."""
    return wait_for(lambda: [pid for pid in processes.descendants(launcher) if
                             "pslaunch.agent" in command(pid)])[0]


@pytest.fixture
def start(nothing_left):  # noqa: F811
    """Starts a job of two workers that run a script: (its launcher, its watchdog)."""
    begun = []

    def begin(script, *flags):
        words = ["env", "--default-signal=HUP",  # even if the tests run under nohup
                 *CLI, "-n", "2", "-s", "1", "--json", *flags, "bash", "-c", script]
        begun.append(subprocess.Popen(words, stdout=subprocess.PIPE, text=True,
                                      stderr=subprocess.PIPE))
        wait_for(lambda: len(nodes_of(nothing_left)) == 4)
        wait_for(lambda: len(hidden()) == 2 * script.count(HIDE))
        return begun[0], watchdog_of(begun[0].pid)

    yield begin
    for process in begun:
        process.kill()
        process.communicate()


def outcome(launcher):
    """(exit code, the last line in JSON, standard error) of one that ends."""
    out, err = launcher.communicate(timeout=60)
    return launcher.returncode, json.loads(out.splitlines()[-1]), err


# ---- The watchdog is killed, or stopped ----


def test_a_job_whose_watchdog_is_killed_ends_at_once_and_says_so(start, nothing_left):  # noqa: F811
    launcher, watchdog = start(f"{HIDES} sleep 100")
    os.kill(watchdog, signal.SIGKILL)
    clock = time.monotonic()
    code, told, err = outcome(launcher)
    cause = "the watchdog was ended by SIGKILL, and its job with it"
    assert (code, told["returncode"], told["cause"]) == (137, 137, cause)
    assert f"launch: the job failed: {cause}\n" in err
    assert time.monotonic() - clock < BOUND
    assert not alive(nothing_left) and not hidden()


def test_a_restart_after_that_has_a_watchdog_of_its_own():
    script = "[ $D2L_EXT_START = 2 ] || { kill -KILL $PPID; sleep 100; }"
    job = launch.run(["bash", "-c", script], max_restarts=1)
    assert (job.returncode, job.restarts) == (0, 1)
    assert job.notes[0] == ("the watchdog was ended by SIGKILL, and its job with it; "
                            "restart 1 of 1")


def test_and_what_a_process_left_in_its_group_without_variables_ends_with_it():
    left = HIDE.replace("setsid ", "")
    job = launch.run(["bash", "-c", f"{left} & sleep 0.5; kill -KILL $PPID; sleep 9"])
    assert job.returncode == 137
    wait_for(lambda: not hidden(), BOUND)


def test_processes_end_with_a_killed_watchdog_even_without_a_launcher(
    start, nothing_left  # noqa: F811
):
    launcher, watchdog = start("exec sleep 100")
    launcher.send_signal(signal.SIGSTOP)  # it cannot do anything about it
    os.kill(watchdog, signal.SIGKILL)
    wait_for(lambda: not nodes_of(nothing_left), BOUND)
    launcher.send_signal(signal.SIGCONT)
    assert outcome(launcher)[0] == 137


LATE = """
import ctypes, os, signal, time
from types import SimpleNamespace
from pslaunch import processes

prctl = ctypes.CDLL(None).prctl

def late(*words):
    os.kill(os.getppid(), signal.SIGKILL)
    time.sleep(0.3)
    prctl(*words)

processes.ctypes = SimpleNamespace(CDLL=lambda name: SimpleNamespace(prctl=late))
processes.popen(["sleep", "1000"])
"""


def test_nor_does_a_process_that_it_was_just_starting_outlive_it(nothing_left):  # noqa: F811
    assert subprocess.run([PYTHON, "-c", LATE], check=False).returncode == -9
    wait_for(lambda: not alive(nothing_left), BOUND)


def test_a_watchdog_that_ends_after_the_job_takes_nothing_from_its_code(monkeypatch):
    end = processes.end

    def killed_before_the_end(job, grace, under):
        os.kill(under, signal.SIGKILL) if grace else None
        return end(job, grace, under=under)

    monkeypatch.setattr(processes, "end", killed_before_the_end)
    job = launch.run(["true"])
    assert (job.returncode, job.cause) == (0, None)


def test_a_watchdog_that_is_stopped_is_continued_and_the_job_keeps_its_code(start):
    launcher, watchdog = start("sleep 3")
    os.kill(watchdog, signal.SIGSTOP)
    code, told, err = outcome(launcher)
    line = f"the watchdog (process {watchdog}) was stopped; it is continued"
    assert (code, told["cause"]) == (0, None)
    assert told["notes"].count(line) == 1 and f"launch: {line}\n" in err


def test_signals_that_a_system_sends_to_all_do_not_end_the_watchdog(start):
    launcher, watchdog = start("sleep 1")
    for signum in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        os.kill(watchdog, signum)
    assert outcome(launcher)[0] == 0


def test_a_stopped_watchdog_ends_the_job_of_a_launcher_that_is_killed(
    start, nothing_left  # noqa: F811
):
    launcher, watchdog = start("sleep 100")
    os.kill(watchdog, signal.SIGSTOP)
    wait_for(lambda: processes.state(watchdog) == "S", BOUND)
    launcher.kill()
    launcher.wait()
    wait_for(lambda: not alive(nothing_left), BOUND)


# ---- A daemon without variables, in a session of its own ----


def test_a_daemon_that_hides_ends_with_its_job():
    job = launch.run(["bash", "-c", f"{HIDES} sleep 1"])
    assert job.returncode == 0 and job.output() == "begun\n"
    assert not hidden()


LEAVES = """
[ $DMLC_WORKER_ID = 0 ] && { sleep 1000 & echo $! > left; exit; }
until [ -s left ]; do sleep 0.05; done
sleep 2
kill -0 $(cat left) && exit 7 || exit 0
"""


def test_the_group_of_a_process_ends_with_it_and_not_with_the_job(monkeypatch,
                                                                  tmp_path):
    monkeypatch.chdir(tmp_path)
    job = launch.run(["bash", "-c", LEAVES])
    assert (job.returncode, job.cause) == (0, None)


@pytest.mark.parametrize(
    "signum, code",
    [(signal.SIGINT, 130), (signal.SIGTERM, 143), (signal.SIGHUP, 129),
     (signal.SIGKILL, -9)],
)
def test_a_launcher_that_is_stopped_leaves_nothing_but_the_logs_that_were_wanted(
    start, nothing_left, tmp_path, signum, code  # noqa: F811
):
    launcher, _ = start(f"{HIDES} sleep 100", "--log-dir", str(tmp_path / "logs"))
    launcher.send_signal(signum)
    _, err = launcher.communicate(timeout=BOUND)
    assert launcher.returncode == code
    if signum == signal.SIGKILL:  # the watchdog needs a moment more, to end itself
        wait_for(lambda: not hidden() and not alive(nothing_left), BOUND)
        assert err == ""
    else:
        assert not hidden() and not alive(nothing_left)
        assert f"stopped by {signal.Signals(signum).name}" in err
    assert (tmp_path / "logs" / "scheduler-0.log").exists()


def test_the_process_of_a_notebook_stays_what_it_was():
    """It may have children of its own, which are no business of a job's."""
    other = subprocess.Popen(["sleep", "100"])
    launch.run(["true"])
    assert not processes.adopts() and other.poll() is None
    other.kill()
    other.wait()


def test_a_process_that_is_another_users_is_let_be_and_not_waited_for(monkeypatch):
    def kill(pid, signum):
        raise PermissionError

    other = subprocess.Popen(["sleep", "100"])
    monkeypatch.setattr(processes.os, "kill", kill)
    clock = time.monotonic()
    assert processes.end("nobody's", grace=60, under=os.getpid()) == []
    assert time.monotonic() - clock < 30
    monkeypatch.undo()
    other.kill()
    other.wait()


# ---- Stopped, not dead ----


@pytest.fixture
def impatient(monkeypatch):
    monkeypatch.setattr(supervise, "SAID", 0.5)
    monkeypatch.setattr(supervise, "ENDED", 2.0)


STOPS = "[ $DMLC_WORKER_ID = 1 ] && {}; sleep 100"


@pytest.mark.parametrize("how", [
    "kill -STOP $$", "bash -c 'kill -STOP $$'",  # itself, and its child
])
def test_a_process_that_is_stopped_is_named_and_ends_the_job(impatient, how):
    job = launch.run(["bash", "-c", STOPS.format(how)])
    assert (job.returncode, job.culprit) == (128 + signal.SIGSTOP, "worker-1")
    name, pid = job.cause.split(" was stopped for 2 s (process ")
    assert name == "worker 1"
    assert job.notes == [(
        "worker 1 is stopped and the job waits for it: continue it with `kill -CONT "
        f"{pid[:-1]}`, or the job ends after 2 s"
    )]


def test_a_process_that_is_continued_as_the_note_says_ends_nothing(
    impatient, monkeypatch
):
    note = runner.Shown.note

    def do_as_it_says(start, line):
        note(start, line)
        for pid in re.findall(r"`kill -CONT (\d+)`", line):
            os.kill(int(pid), signal.SIGCONT)

    monkeypatch.setattr(runner.Shown, "note", do_as_it_says)
    job = launch.run(["bash", "-c", "kill -STOP $$; sleep 1"], num_workers=1)
    assert (job.returncode, len(job.notes)) == (0, 2), job.notes
    assert "worker 0 is stopped" in job.notes[0]


def test_the_deadline_names_who_is_stopped():
    job = launch.run(["bash", "-c", STOPS.format("kill -STOP $$")], deadline=6)
    assert job.returncode == 124
    assert job.cause.endswith("still running: worker 0, worker 1 (stopped)")


def test_a_launcher_that_was_stopped_goes_on_as_after_ctrl_z(start):
    launcher, _ = start("sleep 3; echo $DMLC_WORKER_ID")
    launcher.send_signal(signal.SIGSTOP)
    time.sleep(4)
    launcher.send_signal(signal.SIGCONT)
    code, told, _ = outcome(launcher)
    assert (code, told["workers"]) == (0, ["0", "1"])


def test_time_in_which_the_launcher_itself_was_away_is_not_counted(monkeypatch):
    now, said, process = [0.0], [], Process()
    monkeypatch.setattr(supervise.time, "monotonic", lambda: now[0])
    start = SimpleNamespace(running={"a": process}, describe=str, say=said.append)
    watch = supervise.Watch(start, None, None)

    def look(seconds, halted=7):
        now[0] += seconds
        process.halted = halted
        watch._look_for_stopped()
        return len(said)

    assert [look(1), look(1), look(1)] == [0, 1, 1]
    assert look(9999) == 1  # counts as one second
    assert [look(1, None), look(1), look(1)] == [1, 1, 2]  # and anew
    for _ in range(27):
        look(1)
    with pytest.raises(Failed, match=r"^a was stopped for 30 s \(process 7\)"):
        look(1)


def test_who_is_held_by_a_debugger_is_not_stopped():
    rows = {1: ("S", 0), 2: ("t", 1), 3: ("S", 2), 4: ("T", 3), 5: ("T", 9)}
    assert processes.halted(1, rows) == 4
    del rows[4]
    assert processes.halted(1, rows) is None and processes.halted(5, rows) == 5


def test_descendants_are_found_the_nearest_first_without_those_that_ended():
    rows = {1: ("S", 0), 4: ("S", 3), 3: ("S", 2), 2: ("S", 1), 5: ("Z", 1),
            6: ("S", 7), 7: ("S", 6)}
    assert processes.descendants(1, rows) == [2, 3, 4]
    assert processes.descendants(6, rows) == [7, 6]  # ids were reused meanwhile
