"""A job that failed is started again, goes on from its checkpoint, and ends alike."""

import d2l_ext  # noqa: F401, I001
import re
from types import SimpleNamespace

import pytest
from job_checks import PYTHON, nothing_left  # noqa: F401

import pslaunch as launch
from pslaunch import __main__ as command_line
from pslaunch import environment, plan, restarts

# ---- Started again, or not ----

FAILS = "echo start $D2L_EXT_START; exit $((D2L_EXT_START < {good} ? {code} : 0))"


def failing(good, code=3, **options):
    """A job that fails with `code` before start number `good`."""
    return launch.run(["bash", "-c", FAILS.format(good=good, code=code)],
                      num_workers=1, **options)  # fmt: skip


def test_a_job_that_fails_is_started_again_until_it_ends_well(tmp_path):
    job = failing(good=3, max_restarts=5, log_dir=tmp_path)
    assert (job.returncode, job.cause, job.restarts, job.attempts) == (0, None, 2, 3)
    cause = "worker 0 ended with code 3 before the job was ready"
    assert job.notes[:2] == [f"{cause}; restart {n} of 5" for n in (1, 2)]
    texts = [(tmp_path / f"worker-0.log{end}").read_text()
             for end in (".start-1", ".start-2", "")]  # fmt: skip
    assert texts == ["start 1\n", "start 2\n", "start 3\n"]


def test_after_the_last_restart_it_has_failed():
    job = failing(good=9, max_restarts=1)
    assert (job.returncode, job.restarts) == (3, 1)
    assert job.output() == "start 2\n"


@pytest.mark.parametrize("options", [{}, {"code": 2, "max_restarts": 3}])
def test_without_leave_or_after_a_wrong_flag_nothing_is_started_again(options):
    job = failing(good=9, **options)
    assert (job.returncode, job.restarts) == (options.get("code", 3), 0)


def test_a_job_that_ran_out_of_time_is_not_started_again():
    job = launch.run(["sleep", "100"], num_workers=1, deadline=1, max_restarts=3)
    assert (job.returncode, job.restarts) == (124, 0)


@pytest.mark.parametrize(
    "code, told",
    [(0, False), (1, True), (2, False), (125, True), (126, False), (127, False),
     (137, True)],
)  # fmt: skip
def test_only_a_failure_that_may_pass_is_tried_again(code, told):
    job = SimpleNamespace(returncode=code, restarts=0)
    assert restarts.again(job, 1) == told
    assert not restarts.again(job, 0)
    assert not restarts.again(job, 1, until=0)


def test_the_number_of_the_start_reaches_every_role_and_is_no_users():
    numbered = restarts.numbered(plan.make(["x"], 1, 1), 2)
    assert {env[environment.START] for env in numbered.env.values()} == {"2"}
    with pytest.raises(ValueError, match="D2L_EXT_START is set by the launcher"):
        plan.make(["x"], 1, 1, {environment.START: 3})
    assert environment.START not in environment.inherited({environment.START: "3"})


@pytest.mark.parametrize("value", [-1, 1.5, "2"])
def test_a_wrong_number_of_restarts_is_named(value):
    with pytest.raises(ValueError, match=re.escape(f"max_restarts={value!r}")):
        launch.run(["echo"], max_restarts=value)


def test_the_command_line_counts_restarts(capfd):
    script = FAILS.format(good=2, code=3)
    argv = ["-n", "1", "-s", "1", "--json", "--max-restarts", "1", "bash", "-c", script]
    assert command_line.main(argv) == 0
    out, err = capfd.readouterr()
    assert '"restarts": 1' in out and "restart 1 of 1" in err
