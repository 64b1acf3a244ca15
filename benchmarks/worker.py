"""A process that holds one configuration ready and measures it when asked.

The parent starts it with `Worker`, the script in it ends with `serve`. They
exchange lines of JSON. This module needs the standard library only, because the
interpreter of a peer has neither MXNet nor d2l.
"""

import json
import os
import resource
import selectors
import signal
import subprocess
import sys
import tempfile
from contextlib import contextmanager
from pathlib import Path
from time import perf_counter

ROOT = Path(__file__).resolve().parents[1]
#: Settings of the caller's shell that would change what is measured.
FOREIGN = ("OMP_", "GOMP_", "KMP_", "MKL_", "OPENBLAS_", "ONEDNN_", "DNNL_",
           "MXNET_", "D2L_EXT_", "XLA_", "JAX_", "TORCH_", "NPROC",
           "MALLOC_", "GLIBC_TUNABLES", "LD_PRELOAD")
#: Seconds after which a silent worker is given up: it compiles for far less.
PATIENCE = 600


class WorkerFailed(RuntimeError):
    """A worker ended or fell silent. The message is the last line it wrote."""


class Worker:
    """A process that runs `command`, a list of strings, on the cores `cores`.

    `environ`: settings to add to the caller's, less those in `FOREIGN`.
    Raises `WorkerFailed` if it cannot be started. Use `close` at the end.
    """

    def __init__(self, command, cores=None, environ=None):
        inherited = {k: v for k, v in os.environ.items() if not k.startswith(FOREIGN)}
        self._errors = tempfile.TemporaryFile()  # noqa: SIM115 (lives as long as we)
        try:
            with only_on(cores):
                self._process = subprocess.Popen(
                    command, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                    stderr=self._errors, env={**inherited, **(environ or {})},
                    cwd=ROOT,  # so that `python -m benchmarks.…` is this checkout's
                    start_new_session=True,  # so that `close` ends its children too
                )
        except OSError as error:
            self._errors.close()
            raise WorkerFailed(f"{command[0]}: {error.strerror}") from error

    def about(self):
        """Wait until the worker is ready; return its description, a `dict`."""
        return self._answer()

    def steps(self, count, warm_up=0):
        """Run `warm_up` + `count` steps; the seconds of each of the last `count`."""
        self.begin(count, warm_up)
        return self.seconds()

    def begin(self, count, warm_up=0):
        """Ask for steps and return at once: `seconds` waits for the answer."""
        self._ask(steps=count, warm_up=warm_up)

    def seconds(self):
        """Return the answer to `begin`. `page_faults` per step: of the same steps."""
        answer = self._answer()
        self.page_faults = answer["page_faults"]
        return answer["seconds"]

    def loss(self):
        """Return the mean loss of the full minibatch at the present weights."""
        self._ask(loss=True)
        return self._answer()["loss"]

    def close(self):
        """End the process and its children. May be called twice."""
        if self._errors.closed:
            return
        try:
            self._process.stdin.close()
            self._process.wait(10)
        except (OSError, subprocess.TimeoutExpired):
            pass
        try:
            os.killpg(self._process.pid, signal.SIGKILL)
        except ProcessLookupError:
            pass
        self._process.wait()
        self._process.stdout.close()
        self._errors.close()

    def _ask(self, **request):
        try:
            self._process.stdin.write(json.dumps(request).encode() + b"\n")
            self._process.stdin.flush()
        except OSError as error:
            raise WorkerFailed(self._last_words()) from error

    def _answer(self):
        with selectors.DefaultSelector() as selector:
            selector.register(self._process.stdout, selectors.EVENT_READ)
            if not selector.select(PATIENCE):
                raise WorkerFailed(f"gave no answer for {PATIENCE} seconds")
        line = self._process.stdout.readline()
        if not line.endswith(b"\n"):
            raise WorkerFailed(self._last_words())
        return json.loads(line)

    def _last_words(self):
        try:
            code = self._process.wait(5)
        except subprocess.TimeoutExpired:
            code = None
        self._errors.seek(0)
        lines = self._errors.read().decode(errors="replace").strip().splitlines()
        return lines[-1] if lines else f"ended without a word, exit code {code}"


@contextmanager
def only_on(cores):
    """Start processes on `cores` only: they inherit it from this thread.

    Does nothing when `cores` is None, or where the system cannot do it (macOS).
    """
    if not cores or not hasattr(os, "sched_setaffinity"):
        yield
        return
    before = os.sched_getaffinity(0)
    os.sched_setaffinity(0, cores)
    try:
        yield
    finally:
        os.sched_setaffinity(0, before)


def serve(job):
    """Answer the parent's requests until it closes the pipe.

    `job` has `about`, a `dict`; `step()`, which returns when the work is done;
    `loss()`, a float; and may have `expect(n)`, called before n steps.
    """
    # What libraries print must not end up between the answers.
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)

    def answer(**content):
        answers.write(json.dumps(content) + "\n")
        answers.flush()

    answer(**job.about)
    for line in sys.stdin:
        request = json.loads(line)
        if "loss" in request:
            answer(loss=job.loss())
        else:
            answer(**timed_steps(job, request["steps"], request["warm_up"]))


def timed_steps(job, count, warm_up):
    """Return `seconds` of each of `count` steps, after `warm_up` steps without a clock.

    And `page_faults`, their average number per step: pages of memory that the
    system had to hand out, because the process had given them back.
    """
    if hasattr(job, "expect"):
        job.expect(warm_up + count)
    for _ in range(warm_up):
        job.step()
    seconds, before = [], resource.getrusage(resource.RUSAGE_SELF).ru_minflt
    for _ in range(count):
        start = perf_counter()
        job.step()
        seconds.append(perf_counter() - start)
    faults = resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before
    return {"seconds": seconds, "page_faults": faults / count}
