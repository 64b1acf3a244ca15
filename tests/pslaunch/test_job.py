"""Logs of a job: of processes that print much, or onto a disk or a stream that takes no
more."""

import os
import signal
import subprocess
from pathlib import Path

import pytest
from job_checks import CLI, nodes_of, nothing_left, wait_for  # noqa: F401

import pslaunch as launch
from pslaunch import crew, runner
from pslaunch import job as jobs
from pslaunch.job import Job, Tail

FLOOD = ["-n", "1", "-s", "0"]


def folder_of_logs():
    """Bytes in temporary logs that there are now."""
    return sum(path.stat().st_size for path in
               Path(os.environ["TMPDIR"]).glob("d2l_ext-job-*/*"))


@pytest.mark.parametrize("signum, code", [(None, 124), (signal.SIGTERM, 143),
                                          (signal.SIGINT, 130)])
def test_a_worker_that_prints_without_pause_keeps_nobody_from_ending_the_job(
        nothing_left, signum, code):  # noqa: F811
    deadline = ["--deadline", "3"] if signum is None else []
    with subprocess.Popen([*CLI, *FLOOD, *deadline, "yes"], text=True,
                          stdout=subprocess.DEVNULL, stderr=subprocess.PIPE) as process:
        if signum:
            wait_for(lambda: ("worker", 0) in nodes_of(nothing_left))
            wait_for(lambda: folder_of_logs() > 1 << 20)
            process.send_signal(signum)
        err = process.communicate(timeout=60)[1]
    assert process.returncode == code
    assert err.count("prints more than can be shown or kept") <= 1


def test_a_line_that_comes_while_a_log_is_truncated_is_kept(tmp_path, monkeypatch):
    monkeypatch.setattr(jobs, "LONGEST", 1 << 10)
    monkeypatch.setattr(jobs, "KEPT", 1 << 6)
    log, earlier = tmp_path / "log", jobs.earlier
    log.write_text("a line\n" * 200)

    def late(path):
        with path.open("a") as file:
            file.write("the last\n")
        return earlier(path)

    monkeypatch.setattr(jobs, "earlier", late)
    assert jobs.shorten(log) and log.read_text() == ""
    assert earlier(log).read_text() == "a line\n" * 9 + "the last\n"


def test_the_end_of_a_log_without_lines_is_kept_too(tmp_path, monkeypatch):
    """Such as a progress bar's, with carriage returns only."""
    monkeypatch.setattr(jobs, "LONGEST", 1 << 10)
    monkeypatch.setattr(jobs, "KEPT", 1 << 6)
    for text in ("bar\r" * 300, "x" * 1300 + "\n"):
        log = tmp_path / "log"
        log.write_bytes(text.encode())
        assert jobs.shorten(log) and log.read_bytes() == b""
        assert jobs.earlier(log).read_bytes() == text[-64:].encode()


def test_a_log_that_the_launcher_writes_goes_on_after_it_was_truncated(
    tmp_path, monkeypatch
):
    """Of a process on another host."""
    monkeypatch.setattr(jobs, "LONGEST", 1 << 10)
    monkeypatch.setattr(jobs, "KEPT", 1 << 6)
    log = tmp_path / "log"
    log.write_text("of an earlier start\n")
    member = crew.Member(log)
    member.log.write(b"a line\n" * 200)
    assert jobs.shorten(log)
    member.log.write(b"the next\n")
    member.close()
    assert log.read_bytes() == b"the next\n"


def test_its_temporary_log_does_not_fill_the_disk(monkeypatch):
    monkeypatch.setattr(jobs, "LONGEST", 1 << 20)
    monkeypatch.setattr(jobs, "KEPT", 1 << 16)
    lines = "i=0; while [ $i -lt 60 ]; do seq 1 20000; sleep 0.05; i=$((i+1)); done"
    job = launch.run(["bash", "-c", f"{lines}; echo last; exit 3"], 1, 0)
    path = job.logs["worker-0"]
    assert path.stat().st_size < 4 << 20
    assert job.last_lines(2) == "20000\nlast" and len(job.output()) < 5 << 20
    assert len([n for n in job.notes if "some lines are skipped" in n]) == 1


def test_a_log_in_a_folder_of_the_users_is_kept_whole(monkeypatch, tmp_path):
    monkeypatch.setattr(jobs, "LONGEST", 1 << 16)
    job = launch.run(["seq", "1", "50000"], 1, 0, log_dir=tmp_path / "logs")
    assert job.output().splitlines() == [str(i) for i in range(1, 50001)]


def test_all_is_shown_of_a_worker_that_prints_much_and_ends():
    done = subprocess.run([*CLI, *FLOOD, "seq", "1", "500000"], check=True, text=True,
                          capture_output=True)
    assert done.stdout.splitlines() == [f"worker-0    | {i}" for i in range(1, 500001)]


def test_a_log_is_read_a_piece_at_a_time_and_a_long_line_in_pieces(tmp_path):
    path = tmp_path / "log"
    path.write_text("one\ntwo\n" + "x" * 20 + "\nlast")
    tail, found = Tail(path), []
    for _ in range(5):
        found += tail.lines(last=True, most=10)
    assert found == ["one", "two", "x" * 10, "x" * 10, "", "last"]
    assert tail.left == 0


def test_so_many_lines_are_read_at_a_time_and_the_incomplete_one_last(tmp_path):
    path = tmp_path / "log"
    path.write_text("one\ntwo\n\nlast")
    tail = Tail(path)
    found = [tail.lines(last=True, count=2) for _ in range(3)]
    assert found == [["one", "two"], ["", "last"], []]


def test_the_last_lines_are_found_without_reading_all(tmp_path, monkeypatch):
    monkeypatch.setattr(jobs, "AT_ONCE", 100)
    path = tmp_path / "worker-0.log"
    path.write_text("".join(f"{i}\n" for i in range(10**5)))
    job = Job(culprit="worker-0", logs={"worker-0": path})
    assert (job.last_lines(2), job.last_lines(0)) == ("99998\n99999", "")
    assert job.last_lines(10**6).startswith("983\n99984\n")
    assert len(Job(logs={"worker-0": path})._read("worker-0", 100)) == 100


# ---- A disk, a stream that takes no more ----


@pytest.mark.parametrize("script, code", [("exit 3", 3), ("exit 0", 1)])
def test_a_full_disk_is_named_and_nothing_that_was_lost_ends_well(
        monkeypatch, tmp_path, script, code):
    monkeypatch.setattr(runner, "is_full", lambda folder: True)
    job = launch.run(["bash", "-c", script], 1, 0, log_dir=tmp_path)
    assert job.returncode == code
    assert f"no space is left on the disk of {tmp_path}" in job.cause


def test_a_disk_is_full_when_no_block_is_left(monkeypatch, tmp_path):
    assert not runner.is_full(tmp_path)
    none = os.statvfs_result([4096, 4096, 9, 0, 0, 0, 0, 0, 0, 255])
    monkeypatch.setattr(runner.os, "statvfs", lambda folder: none)
    assert runner.is_full(tmp_path)


@pytest.mark.parametrize("stream, code, says", [
    (">&-", 1, "standard output is closed"),
    (">/dev/full", 1, "standard output: No space left on device"),
    ("| head -n 1 >&2", 141, "standard output: Broken pipe"),
])
def test_output_that_is_lost_is_no_success(stream, code, says):
    words = " ".join([*CLI, *FLOOD, "seq 1 1000000", stream])
    done = subprocess.run(["bash", "-c", f"{words}; exit ${{PIPESTATUS[0]}}"],
                          check=False, text=True, stderr=subprocess.PIPE)
    assert done.returncode == code and says in done.stderr
    assert "Traceback" not in done.stderr and "ignored" not in done.stderr


def test_lost_output_ends_the_job_with_its_code_if_notes_are_lost_too():
    words = " ".join([*CLI, *FLOOD, "seq 1 1000000", "2>&1 | head -n 1"])
    done = subprocess.run(["bash", "-c", f"{words}; exit ${{PIPESTATUS[0]}}"],
                          check=False, text=True, stdout=subprocess.PIPE)
    assert (done.returncode, done.stdout.count("\n")) == (141, 1)
