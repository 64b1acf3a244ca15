"""`import d2l_ext` prepares MXNet's engine, or says that it came too late."""

import ctypes
import os
import subprocess
import sys

import pytest

import d2l_ext  # noqa: F401  (the settings stand before anything loads MXNet)
from d2l_ext import runtime

SET = {**runtime.SETTINGS, **runtime.QUIET}
OWN = {*SET, *(name for _, name, _ in runtime.KEPT)}
CLEAN = {k: v for k, v in os.environ.items() if k not in OWN}


def run(code, **environ):
    return subprocess.run(
        [sys.executable, "-c", code], env={**CLEAN, **environ},
        capture_output=True, text=True, timeout=600, check=False,
    )


def test_a_reader_who_wants_to_hear_of_each_bound_symbol_does():
    environ = {"MXNET_SUBGRAPH_VERBOSE": "1"}
    runtime.prepare(environ, modules={})
    assert environ["MXNET_SUBGRAPH_VERBOSE"] == "1"


BIND = "; import mxnet as mx; (mx.sym.var('x') + 1).simple_bind(mx.cpu(0), x=(2,))"


@pytest.mark.parametrize("code, environ", [
    ("import d2l_ext" + BIND, {}), ("import mxnet, d2l_ext" + BIND, runtime.SETTINGS),
], ids=["in the right order", "mxnet first, with its settings"])
def test_to_import_both_and_to_bind_a_symbol_is_silent(code, environ):
    ran = run(code, **environ)
    assert (ran.returncode, ran.stdout, ran.stderr) == (0, "", "")


def test_mxnet_first_is_a_warning_when_the_reader_insists(capsys):
    """Otherwise an error, which the chapter on devices shows."""
    assert "OMP_NUM_THREADS" in runtime.prepare({runtime.ALLOW_LATE: "1"}, {"mxnet": 0})
    said = capsys.readouterr().err
    assert said.startswith("WARNING: mxnet was imported before d2l_ext")


#: Prints the pages that are fetched in a step which frees its arrays.
FAULTS = """
import d2l_ext
from resource import RUSAGE_SELF, getrusage
from mxnet import np
def step():
    for n in range(10):
        np.ones((20_000_000,)).wait_to_read()
step()
step()
before = getrusage(RUSAGE_SELF).ru_minflt
step()
print(getrusage(RUSAGE_SELF).ru_minflt - before)
"""
ON_GLIBC = pytest.mark.skipif(
    not hasattr(ctypes.CDLL(None), "mallopt"), reason="this C library has no mallopt"
)


@ON_GLIBC
def test_memory_is_kept_also_in_a_notebook_where_threads_have_heaps_of_their_own():
    threads = """
import threading
for _ in range(8):
    threading.Thread(target=threading.Event().wait, daemon=True).start()
"""
    pair = "[np.ones((10_000_000,)) for _ in 'ab'][1]"  # one heap has room for one
    script = threads + FAULTS.replace("np.ones((20_000_000,))", pair)
    kept = max(int(run(code).stdout) for code in (FAULTS, script))
    given_back = int(run(script, **{runtime.KEEP_MEMORY: "0"}).stdout)
    without = int(run(script, MALLOC_TOP_PAD_="131072").stdout)
    assert 5 * kept < min(given_back, without)


@ON_GLIBC
def test_what_the_reader_tells_the_c_library_is_kept():
    every = [name for _, name, _ in runtime.KEPT]
    assert runtime.keep_memory({}) == every
    assert runtime.keep_memory({every[0]: "4096"}) == every[1:]
    assert runtime.keep_memory({runtime.KEEP_MEMORY: "0"}) == []


@pytest.mark.parametrize("version", [(3, 9), (3, 10), (3, 11)])
def test_python_3_9_to_3_11_are_accepted(version):
    runtime.check_python(version)


@pytest.mark.parametrize("version", [(3, 8), (3, 12), (3, 13)])
def test_other_pythons_are_refused_with_the_reason(version):
    with pytest.raises(RuntimeError, match=r"NumPy 1\.23\.5.*Install Python 3\.11"):
        runtime.check_python(version)


CLOSED = """
import atexit, os, sys
os.environ["DMLC_ROLE"] = "worker"
from d2l_ext import runtime
atexit.register(print, "it ends normally, and would wait", file=sys.stderr)
sys.stdout.close()
raise KeyError("on purpose")
"""


def test_a_worker_whose_output_is_closed_still_ends_at_once():
    ran = run(CLOSED)
    assert ran.returncode == 1
    assert ran.stderr.splitlines()[-1] == "KeyError: 'on purpose'"


def libraries(site, *names):
    for name in names:
        path = site / "nvidia" / name / "lib" / f"lib{name}.so.1"
        path.parent.mkdir(parents=True)
        path.write_text("not a library")


def test_a_library_that_needs_another_is_loaded_after_it(tmp_path, monkeypatch):
    """NVBLAS, which takes over matrix products, is left alone."""
    libraries(tmp_path, "needs", "nvblas", "other", "wanted")
    order = []

    def load(path, mode):  # as the dynamic loader would: libneeds links to libwanted
        if path.endswith("libneeds.so.1") and "libwanted.so.1" not in order:
            raise OSError
        order.append(os.path.basename(path))

    monkeypatch.setattr(runtime.ctypes, "CDLL", load)
    assert runtime.preload_cuda(tmp_path) == order
    assert order == ["libother.so.1", "libwanted.so.1", "libneeds.so.1"]


def test_a_library_that_cannot_be_loaded_is_left_out(tmp_path):
    libraries(tmp_path, "broken")
    assert runtime.preload_cuda(tmp_path) == []


def test_the_libraries_are_looked_for_in_this_environment(tmp_path, monkeypatch):
    libraries(tmp_path, "cudart")
    monkeypatch.setattr(runtime.ctypes, "CDLL", lambda path, mode: None)
    paths = {"purelib": str(tmp_path)}
    monkeypatch.setattr(runtime.sysconfig, "get_paths", lambda: paths)
    assert runtime.preload_cuda() == ["libcudart.so.1"]
