"""Jobs that end: what a worker is given, and what the launcher makes of its end."""

import d2l_ext  # noqa: F401, I001
import json
import os
import re
import socket
import subprocess
import threading
from pathlib import Path

import pytest
from job_checks import (  # noqa: F401
    CLI, JOBS, PYTHON, claims, free_port, nothing_left,
)

import pslaunch as launch
from pslaunch import __main__ as command_line
from pslaunch import plan, processes, runner, supervise
from pslaunch.job import Job, Tail

WORDS = [PYTHON, str(JOBS / "words.py")]
NASTY = ["a b", "'", '"', ";", "$(touch x)", "`id`", "line\nline", "ä→日本", "", "-s",
         "*", "\\", "--env", "A:1", "| cat", "&&", "~", "\t"]


def words_of(job, rank=0):
    return json.loads(job.output("worker", rank))


# ---- What a process is given ----


def test_hostile_arguments_arrive_unchanged(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    job = launch.run([*WORDS, *NASTY], num_workers=1, env={"T_NASTY": "".join(NASTY)})
    assert job.returncode == 0
    assert words_of(job)["argv"] == NASTY
    assert words_of(job)["env"]["T_NASTY"] == "".join(NASTY)
    assert not (tmp_path / "x").exists()


def test_a_worker_leads_a_process_group_and_reads_nothing_of_its_launchers():
    work = "import os, sys; print(os.getpgrp() == os.getpid(), [sys.stdin.read()])"
    argv = ["-n", "1", "-s", "1", PYTHON, "-c", work]
    done = subprocess.run([*CLI, *argv], check=True, capture_output=True, text=True,
                          timeout=300, input="for the launcher")
    assert done.stdout == "worker-0    | True ['']\n"


def test_variables_reach_their_role_and_those_of_another_job_reach_none(monkeypatch):
    for name, value in {"DMLC_RANK": "3", "DMLC_ROLE": "server", "PS_VERBOSE": "2",
                        "PS_DROP_MSG": "50", "PORT": "8080"}.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setenv("T_OUTER", "kept")
    job = launch.run(WORDS, num_workers=2, env={"T_ALL": 1}, env_worker={"T_W": "w"},
                     env_server={"T_S": "s"}, env_scheduler={"T_C": "c"})
    first, second = words_of(job)["env"], words_of(job, 1)["env"]
    assert (first["T_OUTER"], first["T_ALL"], first["T_W"]) == ("kept", "1", "w")
    assert not {"T_S", "T_C", "DMLC_RANK", "PS_VERBOSE", "PS_DROP_MSG"} & set(first)
    assert (first["DMLC_ROLE"], first["DMLC_NUM_WORKER"]) == ("worker", "2")
    assert (first["DMLC_WORKER_ID"], second["DMLC_WORKER_ID"]) == ("0", "1")
    assert words_of(job)["port"] < words_of(job, 1)["port"] != "8080"


def test_a_socket_that_its_node_removes_meanwhile_is_no_error(monkeypatch, tmp_path):
    folder = tmp_path / "local"
    folder.mkdir()
    monkeypatch.setattr(processes, "SOCKETS", str(folder))
    (folder / "12").touch()  # no socket
    with socket.socket(socket.AF_UNIX) as sock:
        sock.bind(str(folder / "13"))
        processes.remove_sockets([11, 12, 13])
    assert [path.name for path in folder.iterdir()] == ["12"]
    monkeypatch.setattr(Path, "is_socket", lambda _: True)
    processes.remove_sockets([11])


def test_another_host_gets_what_mxnet_and_the_library_read_and_nothing_else():
    passed = {"MXNET_A": "1", "OMP_A": "2", "KMP_A": "3", "D2L_EXT_A": "4"}
    kept = {"HOME": "/root", "SECRET": "s", "DMLC_ROLE": "server", "PS_VERBOSE": "2",
            "PORT": "80", plan.START: "1", processes.MARK: "m"}
    assert plan.passed_on({**kept, **passed}) == passed


def test_each_role_gets_its_own_values_whatever_the_others_are():
    given = {"A": 1, "B": 1}, {"B": 2}, {"B": 3}, {"PS_VERBOSE": "1"}
    made = plan.make(["x"], 1, 1, *given, verbose=2)
    assert made.env["worker"] == {"A": "1", "B": "2", "PS_VERBOSE": "2"}
    assert made.env["server"] == {"A": "1", "B": "3", "PS_VERBOSE": "2"}
    assert made.env["scheduler"] == {"A": "1", "B": "1", "PS_VERBOSE": "1"}


def test_the_scheduler_tells_when_it_is_ready_whatever_the_user_wants():
    def level(**given):
        return plan.variables_of("scheduler", 0, [("scheduler", 0)], [1], "j", given)

    assert level()["PS_VERBOSE"] == level(PS_VERBOSE="0")["PS_VERBOSE"] == "1"
    assert level(PS_VERBOSE="")["PS_VERBOSE"] == "1"  # ps-lite reads a number, here 0
    assert level(PS_VERBOSE="2")["PS_VERBOSE"] == "2"
    assert plan.make(["x"], verbose=True).env["server"] == {"PS_VERBOSE": "1"}


# ---- How a job ends ----


def test_a_job_whose_workers_open_no_store_ends_well_and_says_so():
    job = launch.run(["echo", "done"], num_workers=2, num_servers=2)
    assert (job.returncode, job.cause, job.attempts) == (0, None, 1)
    assert job.notes == ["no worker opened a distributed store"]
    assert [job.output("worker", i) for i in (0, 1)] == ["done\n"] * 2
    assert sorted(job.logs) == ["scheduler-0", "server-0", "server-1", "worker-0",
                                "worker-1"]


@pytest.mark.parametrize("script, code, cause", [
    ("exit 3", 3, "worker 1 ended with code 3 before the job was ready"),
    ("kill -SEGV $$", 139, "worker 1 was ended by SIGSEGV"),
])
def test_the_code_of_the_worker_that_failed_is_the_jobs(script, code, cause):
    lines = f"echo before; [ $DMLC_WORKER_ID = 0 ] && sleep 100; echo last; {script}"
    job = launch.run(["bash", "-c", lines], num_workers=2)
    assert (job.returncode, job.cause) == (code, cause)
    assert job.last_lines() == "before\nlast"
    assert job.seconds < 20
    with pytest.raises(launch.LaunchError, match=f"(?s){cause}.*last") as caught:
        job.check()
    assert caught.value.job is job


def test_a_server_that_ends_before_the_job_is_ready_fails_it_even_with_code_0(tmp_path):
    (tmp_path / "sitecustomize.py").write_text("import os; os._exit(0)")
    job = launch.run(["sleep", "100"], env_server={"PYTHONPATH": tmp_path})
    assert job.cause == "server 0 ended with code 0 before the job was ready"
    assert job.returncode == 1 and job.seconds < 20


STUBBORN = """setsid bash -c 'trap "" TERM; while :; do sleep 1; done' & sleep 0.2"""


def test_what_a_worker_leaves_behind_is_ended_even_in_a_session_of_its_own():
    """The fixture sees to the assertion."""
    assert launch.run(["bash", "-c", STUBBORN]).returncode == 0


TIDIES = """
if [ $DMLC_WORKER_ID = 1 ]; then until [ -e began ]; do sleep 0.1; done; exit 3; fi
trap 'sleep 0.3; echo tidy; exit' TERM
touch began
while :; do sleep 0.1; done
"""


def test_processes_have_a_moment_to_tidy_up_before_they_are_ended(
    tmp_path, monkeypatch, capsys
):
    monkeypatch.chdir(tmp_path)
    job = launch.run(["bash", "-c", TIDIES], num_workers=2, stream=True)
    assert job.returncode == 3 and job.output().endswith("tidy\n")
    assert "worker-0    | tidy\n" in capsys.readouterr().out


@pytest.mark.parametrize("word, code, cause", [
    ("no-such-command", 127, "no such command: 'no-such-command'"),
    ("/etc/passwd", 126,
     "'/etc/passwd' cannot be run: it is not an executable file (chmod +x)"),
])
def test_an_impossible_command_is_named_and_nothing_is_started(word, code, cause):
    job = launch.run([word])
    assert (job.returncode, job.attempts, job.output("scheduler")) == (code, 1, "")
    assert job.cause == cause
    with pytest.raises(launch.LaunchError):
        launch.run([word], check=True)


def test_a_last_line_that_has_no_end_is_shown_too(capsys):
    launch.run(["printf", "one\\ntwo"], num_workers=1, stream=True)
    assert "worker-0    | one\nworker-0    | two\n" in capsys.readouterr().out


def test_a_command_is_looked_for_on_the_path_of_the_workers(tmp_path):
    (tmp_path / "own-tool").write_text("#!/bin/sh\necho found\n")
    (tmp_path / "own-tool").chmod(0o755)
    path = f"{tmp_path}:{os.environ['PATH']}"
    job = launch.run(["own-tool"], num_workers=1, env_worker={"PATH": path})
    assert (job.returncode, job.output()) == (0, "found\n")


def test_a_file_that_is_no_program_fails_with_its_reason(tmp_path):
    (tmp_path / "junk").write_bytes(b"\x00junk")
    (tmp_path / "junk").chmod(0o755)
    job, usual = launch.run([tmp_path / "junk"]), launch.run(["true"])
    assert job.returncode == 126 and "Exec format error" in job.cause
    assert job.seconds < usual.seconds + 4  # nobody waits 5 s for it


def test_logs_stay_in_the_folder_that_was_named_and_none_of_another_job(tmp_path):
    logs = tmp_path / "a" / "logs"
    launch.run(["echo", "one"], 1, 0, log_dir=logs)
    assert (logs / "worker-0.log").read_text() == "one\n"
    for name in ("worker-0.log.start-1", "worker-0.log.earlier", "notes"):
        (logs / name).write_text("of another\n")
    assert launch.run(["no-such-command"], 1, 0, log_dir=logs).output() == ""
    assert [path.name for path in logs.iterdir()] == ["notes"]


# ---- Ports ----


def test_no_other_agent_takes_a_port_that_is_claimed():
    first, second = processes.free_ports(2)
    with processes.claim_port(first), processes.claim_port(second):
        assert first < second and len(claims()) == 2
        with pytest.raises(processes.Refused, match=f"^port {second} is taken$"):
            processes.claim_port(second)
    processes.claim_port(second).close()


@pytest.mark.parametrize("address", ["127.0.0.2", ""])
def test_who_listens_is_noticed_on_whatever_address(address):
    with socket.create_server((address, 0)) as server:
        port = server.getsockname()[1]
        assert processes.is_listening(port)
        with socket.create_connection((address or "localhost", port)):
            server.close()
            assert not processes.is_listening(port)  # a connection alone is none


def test_and_nobody_is_kept_off_who_begins_at_that_moment():
    over, port = threading.Event(), free_port()

    def ask():
        while not over.is_set():
            processes.is_listening(port)

    asking = threading.Thread(target=ask)
    asking.start()
    for _ in range(300):
        socket.create_server(("127.0.0.1", port)).close()
    over.set()
    asking.join()


def test_a_port_that_is_claimed_or_in_use_is_passed_over(monkeypatch):
    claimed, free = processes.free_ports(2)
    claim = processes.claim_port(claimed)
    with claim, socket.create_server(("127.0.0.1", 0)) as taken:
        row = iter([claimed, taken.getsockname()[1], free])
        drawn = processes.random.SystemRandom
        monkeypatch.setattr(drawn, "randint", lambda *_: next(row))
        assert processes.free_ports(1) == [free]


@pytest.mark.parametrize("number", [0, 3])  # the scheduler's; a worker's, of a ring
def test_a_start_whose_port_was_taken_meanwhile_is_repeated_on_another(monkeypatch,
                                                                       number):
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        port, find = taken.getsockname()[1], processes.free_ports
        ports = find(4)
        ports[number] = port
        row = iter([ports])
        monkeypatch.setattr(supervise, "free_ports",
                            lambda count: next(row, None) or find(count))
        job = launch.run(["echo", "hi"], num_workers=1)
    assert (job.returncode, job.attempts) == (0, 2)
    assert job.notes[0] == (
        f"start 1 did not become ready: here: port {port} is taken")


# ---- A start that does not become ready ----


def test_the_job_is_ready_when_the_scheduler_has_counted_all_nodes_once():
    """With PS_VERBOSE=2 two threads write at a time, and may spoil one line."""
    made = plan.make(["x"], 2, 1)
    for counts in ((1, 2, 3, 4), (1, 2, 3, 1)):
        begun = supervise.Start(made, runner.Shown(made, Job(logs={"worker-0": "x"})))
        for count in counts:
            assert not begun.is_ready
            begun._note_barrier("[12:00] van.cc:199: Barrier count for 4 : 9")
            begun._note_barrier(f"[12:00] van.cc:199: Barrier count for 7 : {count}")
        assert begun.is_ready and not begun.is_closed
        for count in (1, 2, 3, 4):
            assert not begun.is_closed
            begun._note_barrier(f"[12:00] van.cc:199: Barrier count for 7 : {count}")
        assert begun.is_closed


def test_a_growing_log_is_read_line_by_line(tmp_path):
    tail = Tail(tmp_path / "log")
    assert tail.lines() == []
    with open(tmp_path / "log", "wb", buffering=0) as file:
        file.write(b"one\ntw")
        assert tail.lines() == ["one"]
        file.write("o ä".encode()[:-1])
        assert tail.lines() == []
        file.write("ä".encode()[-1:] + b"\nrest \xff")
    assert tail.lines() == ["two ä"]
    assert tail.lines(last=True) == ["rest \ufffd"] and tail.lines(last=True) == []


LISTEN = """
import os, socket, sys, time
with open(os.path.join(sys.argv[1], os.environ["DMLC_WORKER_ID"]), "a") as file:
    file.write("x")
    starts = file.tell()
if eval(sys.argv[2]):
    server = socket.create_server(("127.0.0.1", int(os.environ["PORT"])))
    time.sleep(100)
"""


def listening_if(condition, folder, **options):
    """A job whose workers listen as if they had opened the store, and say no more."""
    folder.mkdir()
    return launch.run([PYTHON, "-c", LISTEN, folder, condition], num_workers=2,
                      ready_timeout=0.5, **options)


def test_a_job_that_does_not_become_ready_is_started_again(tmp_path):
    job = listening_if("starts == 1", tmp_path / "n", log_dir=tmp_path / "logs")
    assert (job.returncode, job.attempts) == (0, 2), job.cause
    assert job.notes[0] == ("start 1 did not become ready: all 4 nodes listen, but "
                            "did not pass the first barrier in 0.5 s")
    assert (tmp_path / "n" / "1").read_text() == "xx"
    assert (tmp_path / "logs" / "scheduler-0.log.start-1").exists()


def test_after_a_few_starts_it_gives_up(tmp_path):
    job = listening_if("True", tmp_path / "n", attempts=2)
    assert (job.returncode, job.attempts) == (125, 2)
    assert job.cause.endswith("pass the first barrier in 0.5 s, in 2 starts")
    assert job.culprit == "scheduler-0" and "Bind to role=scheduler" in job.last_lines()


def test_a_worker_that_does_not_join_ends_those_that_wait_for_it(tmp_path):
    job = listening_if("os.environ['DMLC_WORKER_ID'] == '0'", tmp_path / "n")
    assert (job.returncode, job.attempts) == (1, 1)
    assert job.cause == ("worker 1 ended without opening the store; worker 0 would "
                         "wait for it forever")


def test_a_worker_that_takes_its_time_before_it_opens_the_store_is_waited_for(tmp_path):
    slow = "not time.sleep(9 * int(os.environ['DMLC_WORKER_ID']))"
    job = listening_if(slow, tmp_path / "n", deadline=5)
    assert (job.returncode, job.attempts) == (124, 1)


# ---- The command line ----


def test_values_may_follow_a_colon_or_an_equals_sign_or_come_from_here(monkeypatch):
    monkeypatch.setenv("T_HERE", "secret")
    given = "-n 2 --env A:b=c --env B=d:e --env T_HERE x -n 3 --env -- y"
    command, settings, *_ = command_line.parse(given.split())
    assert settings["env"] == {"A": "b=c", "B": "d:e", "T_HERE": "secret"}
    assert (settings["num_workers"], settings["num_servers"]) == (2, 2)
    assert settings["deadline"] is None
    assert command == ["x", "-n", "3", "--env", "--", "y"]


def test_a_dry_run_starts_nothing_and_shows_no_values_but_its_own(capsys, monkeypatch):
    monkeypatch.setenv("T_TOKEN", "secret")
    argv = "-n 1 -s 1 --dry-run --env T_TOKEN --env-worker T_W:hidden echo"
    assert command_line.main([*argv.split(), "a b"]) == 0
    out = capsys.readouterr().out
    assert [line.split(":")[0] for line in out.splitlines()] == [
        "scheduler-0", "server-0", "worker-0"]
    assert "DMLC_ROLE=worker" in out and out.endswith("echo 'a b'\n")
    assert "T_TOKEN=…" in out and "secret" not in out and "hidden" not in out


@pytest.mark.parametrize("argv, message", [
    ("echo", "the following arguments are required: -n/--num-workers"),
    ("-n 2", "no command: give it"),
    ("-n 0 echo", "num_workers=0: give a whole number of at least 1"),
    ("-n two echo", "-n/--num-workers: invalid int value: 'two'"),
    ("-n 2 -s -1 echo", "num_servers=-1"),
    ("-n 2 --deadline nan echo", "deadline=nan: give a number of seconds, at least 0"),
    ("-n 2 --launcher magic echo", "'magic' (choose from 'local', 'ssh', "),
    ("-n 2 --env T_NOT_HERE echo", "T_NOT_HERE is not set here"),
    ("-n 2 --log-dir /dev/null/x echo", "/dev/null"),
    ("-n 2 --frobnicate echo", "unrecognized arguments: --frobnicate"),
])
def test_a_wrong_flag_is_an_error_in_one_line(argv, message, capsys):
    try:
        code = command_line.main(argv.split())
    except SystemExit as exit:
        code = exit.code
    out, err = capsys.readouterr()
    assert (code, out) == (2, "") and err.count("\n") == 1
    assert message in err


@pytest.mark.parametrize("given, message", [
    ({"command": "echo hi"}, "give a list of words"),
    ({"command": []}, "give a list of words"),
    ({"command": 5}, "command=5: give a list of words"),
    ({"command": ["x.py", "--lr", 0.1]}, "command: 0.1 is a float: give each word as"),
    ({"command": [b"x"]}, "command: b'x' is a bytes: give each word as a string"),
    ({"command": ["a\0b"]}, "null character"),
    ({"hosts": []}, "hosts: no hosts: write one per line"),
    ({"hosts": 5}, "hosts=5: give the path of a hosts file, or a list of its lines"),
    ({"num_workers": 0}, "num_workers=0: give a whole number of at least 1"),
    ({"num_servers": 1.5}, "num_servers=1.5"),
    ({"launcher": "magic"}, "launcher='magic': choose local"),
    ({"launcher": "ssh"}, "the launcher ssh needs hosts"),
    ({"launcher": "local", "hosts": ["h1"]}, "hosts: the launcher local uses"),
    ({"interface": "eth1"}, "interface: the launcher local uses this"),
    ({"sync_dst_dir": "/tmp/x"}, "sync_dst_dir: the launcher local uses this"),
    ({"ssh_config": "config"}, "ssh_config: the launcher local uses this"),
    ({"submit_args": ["-p"]}, "submit_args: the launcher local uses this"),
    ({"interface": Path("eth0")}, "interface=PosixPath('eth0'): give a string"),
    ({"sync_dst_dir": "/tmp/\0x"}, r"sync_dst_dir='/tmp/\x00x' contains a null char"),
    ({"submit_args": "-p short"}, "submit_args='-p short': give a list of words"),
    ({"submit_args": [3]}, "submit_args=[3]: give a list of words"),
    ({"verbose": 3}, "PS_VERBOSE is 0, 1 or 2"),
    ({"attempts": 0}, "attempts=0"),
    ({"deadline": -1}, "deadline=-1: give a number of seconds, at least 0"),
    ({"ready_timeout": float("inf")}, "seconds, at least 0 and finite"),
    ({"ready_timeout": None}, "ready_timeout=None: give a number of seconds"),
    ({"deadline": "5"}, "deadline='5': give a number of seconds"),
    ({"max_restarts": -1}, "max_restarts=-1"),
    ({"max_restarts": "2"}, "max_restarts='2'"),
    ({"env": {"PORT": 1}}, "PORT is set by the launcher"),
    ({"env_worker": {"A=B": 1}}, "variable 'A=B': give a name without ="),
    ({"env_server": ["A:1"]}, "env_server is a list: give variables as a dict"),
])
def test_a_wrong_argument_is_named_with_its_value(given, message):
    with pytest.raises(ValueError, match=re.escape(message)):
        launch.run(**{"command": ["echo"], **given})
