"""What the launcher's command line hands over and reports, and some of its promises."""

import d2l_ext  # noqa: F401, I001
import json
import os
import subprocess

import pytest
from job_checks import CLI, nothing_left  # noqa: F401

from pslaunch import __main__ as command_line
from pslaunch import processes
from pslaunch.plan import Host
from pslaunch.job import Job


@pytest.fixture
def given(monkeypatch, tmp_path):
    """The plan that the command line makes, of a job that is said to have failed."""
    log = tmp_path / "worker-0.log"
    log.write_text("".join(f"line {i}\n" for i in range(1, 21)))

    made = []

    def carry_out(plan):
        made.append(plan)
        return Job(returncode=3, cause="worker 0 ended with code 3", attempts=4,
                   restarts=2, logs={"worker-0": log}, culprit="worker-0")

    monkeypatch.setattr(command_line, "carry_out", carry_out)
    return made


def main(line):
    return command_line.main(line.split())


def test_every_flag_reaches_the_job(given, tmp_path):
    (tmp_path / "hosts").write_text("h1")
    main(
        "-n 2 -s 3 --launcher ssh --env A:1 --env-worker B:2 --env-server C:3 "
        "--deadline 7 --log-dir logs --ps-verbose 2 --attempts 5 --ready-timeout 9 "
        "--max-restarts 4 --sync-dst-dir copy --interface eth1 "
        f"--ssh-config conf --python python9 -H {tmp_path}/hosts python x.py"
    )
    (made,) = given
    expected = {
        "num_workers": 2, "num_servers": 3,
        "launcher": "ssh", "env": {"A": "1"}, "env_worker": {"B": "2"},
        "env_server": {"C": "3"}, "deadline": 7, "log_dir": "logs", "verbose": 2,
        "attempts": 5, "ready_timeout": 9, "max_restarts": 4,
        "hosts": [Host("h1")], "sync_dst_dir": "copy", "interface": "eth1",
        "ssh_config": "conf", "python": "python9",
        "stream": True,
    }
    settings = vars(made.settings)
    assert {name: settings[name] for name in expected} == expected
    assert made.command == ["python", "x.py"]


def test_a_failed_job_gives_its_code_its_cause_and_its_last_ten_lines(given, capsys):
    assert main("-n 1 --json x") == 3
    out, err = capsys.readouterr()
    assert "the job failed: worker 0 ended with code 3" in err
    assert err.splitlines()[-10:] == [f"line {i}" for i in range(11, 21)]
    told = json.loads(out.splitlines()[-1])
    assert (told["returncode"], told["workers"]) == (3, ["line 20"])
    assert (told["attempts"], told["restarts"]) == (4, 2)


@pytest.mark.parametrize("said, told", [
    ('{"rank": 0}\n', {"rank": 0}),
    ('{"epoch": 1}\n{"rank": 0}\n[00:30:47] van.cc:45: W[9] is stopped\n', {"rank": 0}),
    ('{"rank": 0}\nterminate called recursively\n\n', {"rank": 0}),
    ("{'rank': 0}\ndone\n", "done"), ("", ""),
])
def test_the_summary_has_of_each_worker_its_last_object_or_line(tmp_path, said, told):
    log = tmp_path / "worker-0.log"
    log.write_text(said)
    summary = command_line.summary(Job(logs={"worker-0": log}), 1)
    assert summary["workers"] == [told]


@pytest.mark.parametrize("flags, shown", [
    ([], "worker-0    | Z?rich\n"),
    (["--dry-run", "--env", "A:1"], "worker-0: DMLC_ROLE=worker A=? echo 'Z?rich'\n"),
])
def test_what_standard_output_cannot_encode_is_shown_as_a_question_mark(flags, shown):
    words = [*CLI, "-n", "1", "-s", "0", *flags, "echo", "Zürich"]
    env = {**os.environ, "PYTHONIOENCODING": "ascii"}
    done = subprocess.run(words, check=False, capture_output=True, text=True, env=env)
    assert done.returncode == 0 and done.stdout.endswith(shown)


def test_the_help_ends_with_a_hosts_file(capsys):
    """And has no text with a % that `argparse` takes for its own."""
    with pytest.raises(SystemExit):
        command_line.parse(["--help"])
    assert capsys.readouterr().out.endswith("at most 4 processes (mpi)\n")


def test_ports_come_from_below_those_that_the_system_gives_to_connections():
    """A node could else be connected to itself. Linux begins at 32,768."""
    assert 1024 < processes.FIRST_PORT < processes.LAST_PORT < 32768
