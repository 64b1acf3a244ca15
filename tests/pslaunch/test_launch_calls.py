"""A function that runs in every worker: how it gets there, and what comes back."""

import d2l_ext  # noqa: F401, I001
import functools
import math
import os
import pickle
import subprocess
import sys
import threading
import time
from contextlib import suppress

import cloudpickle
import mxnet as mx
import numpy
import pytest
from job_checks import PYTHON, nothing_left  # noqa: F401
from mxnet import np, npx

import pslaunch as launch
from pslaunch import calls
from d2l_ext.data_parallel.minibatch import shard_sizes
from d2l_ext.kvstore import dist_train
from pslaunch.job import Job

npx.set_np()
FIVE = 5


def adds_up(kv, value, arrays):
    kv.init("a", np.zeros(3))
    kv.push("a", np.full(3, value + kv.rank))
    out = np.zeros(3)
    kv.pull("a", out=out)
    print("rank", kv.rank, "has", out)
    return {"rank": kv.rank, "type": kv.type, "sum": out, "root": math.sqrt(value),
            "shards": shard_sizes(10, 2), "scalar": np.zeros(()).shape,
            "array": arrays["x"] * 2}


@pytest.mark.parametrize("env", [
    {}, {"PS_RESEND": 1, "PS_RESEND_TIMEOUT": 1000}, {"DMLC_LOCAL": 1},
])
def test_every_worker_runs_the_function_and_results_come_in_order_of_rank(env):
    job = launch.call_job(adds_up, 4, {"x": numpy.arange(3)}, num_servers=2, env=env)
    assert [found["rank"] for found in job.results] == [0, 1]
    for rank, found in enumerate(job.results):
        assert found["type"] == "dist_sync" and found["sum"].tolist() == [9, 9, 9]
        assert (found["root"], found["shards"], found["scalar"]) == (2, [5, 5], ())
        assert found["array"].dtype == "int64" and found["array"].tolist() == [0, 2, 4]
        said, line = job.output("worker", rank), f"rank {rank} has [9. 9. 9.]\n"
        # ps-lite may tell of messages that it sends again, and abort when all is done.
        assert said == line or "PS_RESEND" in env and line in said
    assert (job.returncode, job.cause) == (0, None)


def fails_in_one(kv):
    kv.init("a", np.zeros(3))
    if kv.rank == 1:
        raise ArithmeticError("on purpose")
    kv._barrier()


def test_a_function_that_raises_ends_the_job_with_its_traceback():
    clock = time.monotonic()
    with pytest.raises(launch.LaunchError) as caught:
        launch.call(fails_in_one)
    assert time.monotonic() - clock < 40
    assert caught.value.job.cause == "worker 1 ended with code 1"
    message = str(caught.value)
    assert 'raise ArithmeticError("on purpose")' in message  # the line of the source
    assert message.endswith("ArithmeticError: on purpose")


def makes_its_own(kv, kind):
    own = mx.kv.create(kind)
    return kv is None, own.rank, own.num_workers


def has_a_store_of_its_own(kv):
    return kv.type, kv.rank, os.environ["DMLC_WORKER_ID"]


def test_results_of_workers_that_are_all_rank_0_of_a_local_store_come_apart():
    found = launch.call(has_a_store_of_its_own, num_servers=0, kv_type="local")
    assert found == [("local", 0, "0"), ("local", 0, "1")]


def leaves_in_one(kv):
    if os.environ["DMLC_WORKER_ID"] == "1":
        print("last words")
        os._exit(0)
    return FIVE


def test_a_worker_that_ends_without_a_result_fails_the_job_and_is_named(monkeypatch):
    monkeypatch.delenv("PYTHONUNBUFFERED", raising=False)  # what it said stays, too
    job = launch.call_job(leaves_in_one, num_servers=0, kv_type=None, check=False)
    assert (job.returncode, job.results, job.last_lines()) == (1, None, "last words")
    assert job.cause == "worker 1 ended with code 0, but without a result"
    with pytest.raises(launch.LaunchError, match="worker 1 .* without a result"):
        job.check()


def test_a_workers_work_is_done_once_its_result_is_there(monkeypatch):
    """What a worker that aborts later is judged by."""
    found = []

    def carry_out(plan, is_done):
        found.append(is_done(1, 0))
        calls.write_result(calls._result(plan.command[-1], 1, 0), 0, FIVE)
        found.extend([is_done(1, 0), is_done(2, 0)])
        return Job()

    monkeypatch.setattr(calls, "carry_out", carry_out)
    assert launch.call(leaves_in_one, num_workers=1) == [FIVE]
    assert found == [False, True, False]


def doubles_with_scipy(kv):
    loaded = "sklearn" in sys.modules
    from scipy import sparse, stats

    array = mx.nd.sparse.csr_matrix(sparse.csr_matrix([[0, 1], [2, 0]]))
    return (array * 2).asscipy().toarray().tolist(), loaded, stats.norm.cdf(0)


def test_a_worker_loads_mxnet_without_sklearn_and_still_has_all_of_scipy():
    found = launch.call(doubles_with_scipy, num_workers=1, num_servers=0, kv_type=None)
    assert found == [([[0, 2], [4, 0]], False, 0.5)]


# ---- What goes there ----


def around(five):
    def worker(kv):
        return five

    return worker


def uses_a_constant(kv):
    return FIVE


def uses_a_function(kv):
    return uses_a_constant(kv)


class Own:
    five = FIVE


def uses_a_class(kv):
    return Own().five


@functools.wraps(shard_sizes)
def says_it_is_another(n, k):
    return FIVE


def uses_an_impostor(kv):
    return says_it_is_another(1, 1)


def uses_modules(kv):
    return [math.sqrt(25), float(np.full(1, 5)), shard_sizes(10, 2)[0]]


def loads(kv):
    """Modules that only tests load; this file is one."""
    return {"pytest", __name__} & sys.modules.keys()


def all_of(kv, *functions):
    return [function(kv) for function in functions]


def test_a_function_brings_along_what_it_uses_of_its_own_file_and_imports_the_rest():
    """Whether it has a name of its own or not, and is the function or an argument."""
    found = launch.call(
        all_of, around(5), lambda kv: FIVE, uses_a_constant, uses_a_function,
        uses_a_class, uses_an_impostor, uses_modules, loads, lambda kv: Own,
        kv_type=None, num_workers=1,
    )[0]
    assert found == [5] * 6 + [[5] * 3, set(), Own]


def test_a_partial_brings_along_what_its_function_uses():
    with suppress(ValueError):  # no other test has registered this file
        cloudpickle.unregister_pickle_by_value(sys.modules[__name__])
    function = functools.partial(makes_its_own, kind="local")
    found = launch.call(function, num_workers=1, num_servers=0, kv_type=None)
    assert found == [(True, 0, 1)]


def test_a_function_of_the_library_is_sent_as_well():
    assert launch.call(dist_train.finish, num_workers=1) == [None]


def uses_nothing_known(kv):
    return unheard_of  # noqa: F821


def returns_a_generator(kv):
    return (x for x in "ab")


@pytest.mark.parametrize("function, message", [
    (uses_nothing_known, "NameError: name 'unheard_of' is not defined"),
    (returns_a_generator, "TypeError: the result, a generator, cannot be sent to"),
])
def test_what_fails_in_the_worker_is_told_there(function, message):
    job = launch.call_job(function, kv_type=None, num_workers=1, check=False)
    assert job.returncode == 1 and job.results is None
    assert message in job.last_lines(1)


LOCK = threading.Lock()


def uses_a_lock(kv):
    with LOCK:
        return FIVE


@pytest.mark.parametrize("function, args, message", [
    (uses_a_lock, [], "^uses_a_lock, what it uses, or an argument cannot be sent"),
    (around(LOCK), [], "worker, what .*_thread.lock. object. Send its contents, or"),
    (makes_its_own, [1, [LOCK]], "^makes_its_own, what it uses, or an argument cannot"),
    (5, [], "^5 is not callable: give a function$"),
])
def test_what_cannot_be_sent_is_refused_by_name(function, args, message):
    with pytest.raises(TypeError, match=message):
        launch.call(function, *args)


# ---- From a notebook ----

CELLS = [
    """
import pslaunch as launch

FIVE = 5

def helper(kv, value):
    import mxnet as mx
    if kv.rank == value:
        raise ArithmeticError("on purpose")  # in a cell
    return mx.nd.full(2, value), mx.np.full(1, value + FIVE)
""", """
def worker(kv, value):
    return helper(kv, value)  # in another

(legacy, new), = launch.call(worker, 1, num_workers=1)
print(type(legacy).__name__, legacy.tolist(), type(new).__name__, new.tolist())
""", """
import sys
print("mxnet" in sys.modules)
job = launch.call_job(worker, 0, num_workers=1, check=False)
print(job.last_lines(20))
"""]

NOTEBOOK = """
import sys
from IPython.core.interactiveshell import InteractiveShell
shell = InteractiveShell.instance(colors="NoColor")
for cell in sys.argv[1:]:
    shell.run_cell(cell).raise_error()
"""


def test_functions_of_cells_run_there_and_a_traceback_shows_their_lines():
    """The notebook needs no MXNet for it, also when arrays of MXNet come back."""
    said = subprocess.run([PYTHON, "-c", NOTEBOOK, *CELLS], capture_output=True,
                          text=True, check=True).stdout
    first, second, *log = said.splitlines()
    assert (first, second) == ("ndarray [1.0, 1.0] ndarray [6.0]", "False")
    assert "    return helper(kv, value)  # in another" in log
    assert '    raise ArithmeticError("on purpose")  # in a cell' in log
    assert log[-1] == "ArithmeticError: on purpose"


# ---- Results ----


def test_arrays_of_mxnet_come_back_as_numpys_wherever_they_are(tmp_path):
    row = mx.nd.sparse.row_sparse_array((mx.nd.ones((1, 2)), [1]), shape=(3, 2))
    arrays = [mx.nd.ones(2), np.ones(2), np.ones((), "int64"), row]
    calls.write_result(tmp_path / "a", 3, {"x": (arrays, around(np.ones(2)))})
    rank, result = pickle.loads((tmp_path / "a").read_bytes())
    back, inside = result["x"]
    assert rank == 3
    for found, array in zip([*back, inside(None)], [*arrays, np.ones(2)]):
        assert type(found) is numpy.ndarray and found.dtype == array.dtype
        assert found.tolist() == array.asnumpy().tolist()


def test_a_result_is_there_only_when_it_is_whole(tmp_path, monkeypatch):
    replace, looked = calls.os.replace, []

    def look(part, path):
        looked.append((calls.is_there(tmp_path, 1, 0), pickle.loads(part.read_bytes())))
        replace(part, path)

    monkeypatch.setattr(calls.os, "replace", look)
    calls.write_result(tmp_path / "result-1-0", 1, [5])
    assert looked == [(False, (1, [5]))] and calls.is_there(tmp_path, 1, 0)
    calls.write_result(tmp_path / "result-1-1", 0, [6])
    assert calls.read_results(tmp_path, 1, 2) == [[6], [5]]  # by rank
