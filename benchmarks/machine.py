"""The machine: which cores to use, whether they are free, and what it is."""

import os
import sys
from contextlib import contextmanager
from pathlib import Path
from statistics import median
from time import perf_counter, sleep

from .measure import paired_ratios
from .worker import Worker

#: Cores that other work may keep busy, of all, before a result carries a warning.
BUSY = 0.05
#: Two processes side by side take at most 1 / 0.93 of the time of one alone.
TWO_CORES = 0.93


def cores(count):
    """Return the numbers of `count` cores that this process may use, or as many as
    there are.

    Hardware threads of one core come last: they share its arithmetic units.
    None where the system does not tell (macOS): workers are not pinned there.
    """
    if not hasattr(os, "sched_getaffinity"):
        return None
    first, second = [], []
    seen = set()
    for cpu in sorted(os.sched_getaffinity(0)):
        siblings = _read(
            f"/sys/devices/system/cpu/cpu{cpu}/topology/thread_siblings_list"
        ) or str(cpu)
        (second if siblings in seen else first).append(cpu)
        seen.add(siblings)
    return (first + second)[:count]


def spin_test(start_spinner, rounds=3, steps=4):
    """Return whether two processes really get two cores: about 1 if so, 0.5 if not.

    `start_spinner`: returns a new `worker.Worker` of `spin.py`. Returns the median
    over the rounds of (seconds of one alone) / (seconds of two side by side).
    """
    pair = []
    try:
        pair += [start_spinner() for _ in range(2)]
        for spinner in pair:
            spinner.about()
        alone, together = [], []
        for _ in range(rounds):
            alone.append(sum(pair[0].steps(steps)))
            for spinner in pair:
                spinner.begin(steps)
            together.append(max(sum(spinner.seconds()) for spinner in pair))
        return median(paired_ratios(alone, together))
    finally:
        for spinner in pair:
            spinner.close()


class CpuClock:
    """Core-seconds that the whole machine worked, and those that were stolen."""

    def __init__(self):
        self.start, self.at = _cpu_seconds(), perf_counter()

    def cores_busy(self, own=0.0):
        """Average number of cores busy so far, less `own` core-seconds; or None."""
        if self.start is None:
            return None
        busy = _cpu_seconds()[0] - self.start[0] - own
        return round(max(0.0, busy) / (perf_counter() - self.at), 3)

    def cores_stolen(self):
        """Average number of cores that the hypervisor took away so far; or None."""
        if self.start is None:
            return None
        stolen = _cpu_seconds()[1] - self.start[1]
        return round(stolen / (perf_counter() - self.at), 3)


def quietness(start_spinner, seconds=1.0):
    """Return what else the machine does, now: a `dict` with a list of `warnings`.

    The load average lags by a minute, so it is recorded and not judged. The
    cores busy in the next `seconds`, in which we sleep, are.
    """
    clock = CpuClock()
    sleep(seconds)
    busy, stolen = clock.cores_busy(), clock.cores_stolen()
    ratio = round(spin_test(start_spinner), 3)
    warnings = []
    if busy is not None and busy > BUSY:
        warnings.append(f"other work keeps {busy:.2f} cores busy")
    if ratio < TWO_CORES:
        warnings.append(
            f"two processes side by side run at {ratio:.2f} of the speed of one alone"
        )
    load = list(os.getloadavg()) if hasattr(os, "getloadavg") else None
    return {"load_average": load, "cores_busy_before": busy,
            "cores_stolen_before": stolen, "spin_ratio": ratio,
            "warnings": warnings}


@contextmanager
def watched():
    """Watch what else the machine does, before the body and while it runs.

        with machine.watched() as quiet:
            …

    `quiet` is what `quietness` returns; at the end it has `cores_busy_by_others`,
    `cores_stolen` and the warnings about the run itself, too. Nothing should have been
    started before.
    """
    quiet = quietness(_start_spinner)
    print(*warning_lines(quiet["warnings"]), sep="\n", file=sys.stderr)
    clock, own = CpuClock(), own_core_seconds()
    yield quiet
    others = clock.cores_busy(own_core_seconds() - own)
    stolen = clock.cores_stolen()
    quiet.update(cores_busy_by_others=others, cores_stolen=stolen)
    quiet["warnings"] += run_warnings(others, stolen)


def _start_spinner():
    return Worker([sys.executable, "-m", "benchmarks.spin"], cores(2))


def warning_lines(warnings):
    """Return lines that say why the figures are not to be trusted, if so."""
    if not warnings:
        return []
    return ["", f"WARNING: not a quiet machine: {'; '.join(warnings)}.",
            "Do not quote these figures."]


def run_warnings(others, stolen):
    """Return the warnings about the run itself. `others`, `stolen`: cores, or None."""
    warnings = []
    if others is not None and others > BUSY:
        warnings.append(f"other work kept {others:.2f} cores busy during the run")
    if stolen is not None and stolen > BUSY:
        warnings.append(f"the hypervisor took away {stolen:.2f} cores during the run")
    return warnings


def own_core_seconds():
    """Return the core-seconds of this process and of all children that have ended."""
    t = os.times()
    return t.user + t.system + t.children_user + t.children_system


def _cpu_seconds():
    fields = _read("/proc/stat").split("\n", 1)[0].split()[1:9]
    if not fields:
        return None
    user, nice, kernel, _idle, _wait, irq, softirq, steal = map(int, fields)
    tick = os.sysconf("SC_CLK_TCK")
    return (user + nice + kernel + irq + softirq) / tick, steal / tick


def _read(path):
    try:
        return Path(path).read_text().strip()
    except OSError:
        return ""
