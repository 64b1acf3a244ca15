"""Variables that a shell still has, and flags out of range: told in one line."""

import d2l_ext  # noqa: F401, I001
import os
import subprocess
import sys

import pytest

from d2l_ext import runtime

JOB = {"DMLC_ROLE": "worker", "DMLC_PS_ROOT_URI": "127.0.0.1", "DMLC_PS_ROOT_PORT": "9",
       "DMLC_NUM_WORKER": "2", "DMLC_NUM_SERVER": "1"}


@pytest.mark.parametrize("env", [
    {"OMP_NUM_THREADS": "abc"}, {"MXNET_CPU_WORKER_NTHREADS": "0"},
    {"MXNET_CPU_TEMP_COPY": "abc"}, {"MXNET_ENGINE_TYPE": "Foo"},
    {**JOB, "DMLC_ROLE": "boss"}, {**JOB, "DMLC_NUM_WORKER": "abc"},
    {**JOB, "DMLC_PS_ROOT_PORT": "x"}, {**JOB, "D2L_EXT_RING": "nonsense"},
])
def test_a_variable_with_nonsense_is_named_with_its_value(env):
    with pytest.raises(ValueError) as caught:
        runtime.check_variables(env)
    assert any(f"{name}={value}: expected" in str(caught.value)
               for name, value in env.items())


def test_a_role_without_the_rest_of_a_job_is_named():
    with pytest.raises(ValueError, match="DMLC_ROLE=server is set, and DMLC_PS_ROOT_U"):
        runtime.check_variables({"DMLC_ROLE": "server"})


@pytest.mark.parametrize("env", [
    {}, JOB, {"OMP_NUM_THREADS": "4,2"},
    {**JOB, "D2L_EXT_RING": "token h:9091 h:9092", "DMLC_WORKER_ID": "0",
     "DMLC_NUM_SERVER": "0"},
])
def test_what_a_job_or_a_user_sets_is_let_be(env):
    runtime.check_variables(env)


def test_the_trainer_says_so_before_it_imports_mxnet():
    env = {**os.environ, "MXNET_CPU_WORKER_NTHREADS": "0"}
    done = subprocess.run([sys.executable, "-m", "d2l_ext.train"], check=False, env=env,
                          capture_output=True, text=True)
    assert done.returncode == 2 and len(done.stderr.splitlines()) == 1


def test_a_notebook_is_no_process_of_a_job():
    with pytest.raises(RuntimeError, match="DMLC_ROLE=scheduler is set in this noteb"):
        runtime.refuse_a_role_in_a_notebook({"DMLC_ROLE": "scheduler"}, {"ipykernel"})
    runtime.refuse_a_role_in_a_notebook(JOB, {})
    runtime.refuse_a_role_in_a_notebook({}, {"ipykernel"})


def test_a_worker_that_a_shell_started_says_for_whom_it_waits(capfd):
    runtime.tell_of_a_role(JOB, seconds=60)
    assert "a worker of a job of 2 workers and 1 servers at 127.0.0.1:9" in (
        capfd.readouterr().err)
    assert runtime.tell_of_a_role({**JOB, "D2L_EXT_JOB": "mark"}) is None


def test_help_and_a_wrong_flag_need_no_mxnet():
    code = ("import sys, trainkit.command as c\ntry: c.main(sys.argv[1:])\n"
            "except SystemExit: print('mxnet' in sys.modules)")
    for words in (["--help"], ["--lr", "x"]):
        done = subprocess.run([sys.executable, "-c", code, *words], check=True,
                              capture_output=True, text=True)
        assert done.stdout.endswith("False\n")
