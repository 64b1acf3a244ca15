"""Findings: measurements of this run, compared with the text.

The book asserts structure (order, counts, bytes, equality), which is the same on every
machine. A measurement may differ on another machine: then the reader is told what was
measured here, and the run goes on. Only an author who records outputs is stopped,
because the text beside them would be false.
"""

import json
import os
import time

#: Set to 1 where outputs are recorded (`make rerun`): a finding that fails raises.
RECORDING = "D2L_EXT_RECORDING"
#: The variable with a file that gets a line of JSON for each finding that fails.
COLLECTED_IN = "D2L_EXT_FINDINGS"
#: The variable with the most times that it is measured: 1 where nobody reads it.
TRIES = "D2L_EXT_TRIES"
#: After so many seconds it is not measured again: the reader of a slow machine waits.
PATIENCE = 60


def tell(what, holds, measure, first=None, figure=None, tries=5):
    """Print the finding `what`, with its figure, if it holds; return the measurement.

        pair = tell("Both devices are at work for", overlapping, ask_both, first=pair)

    `what`: the start of a line that the figure completes. `holds`: a function that says
    whether the finding holds for a measurement. `measure`: a function without arguments
    that returns a measurement. `first`: a measurement made before. While the finding
    does not hold, it is measured again, up to `tries` times in all and with growing
    pauses, because other programs may have used the processors; but a try that ends a
    minute after the call, or later, is the last, and `D2L_EXT_TRIES` may allow fewer.
    `figure`: a function that returns a short text for a measurement; by default, for a
    timeline, the share of time in which its devices worked at once, otherwise `str`.

    If it never holds, a line reports the figures of all tries and the share of the
    processors that other programs used; it is also added to the file that
    `D2L_EXT_FINDINGS` names. With `D2L_EXT_RECORDING=1`, which `make rerun` sets,
    `AssertionError` is raised instead.

    Developed in the chapter *Devices*.
    """
    figure = figure or _figure
    tries = min(tries, int(os.environ.get(TRIES, tries)))
    clock, before = time.monotonic(), taken_by_others()
    found = measure() if first is None else first
    figures = [figure(found)]
    while not (held := holds(found)) and len(figures) < tries and (
        time.monotonic() - clock < PATIENCE
    ):
        time.sleep(0.25 * len(figures))
        found = measure()
        figures.append(figure(found))
    if held:
        tried = f" (in try {len(figures)})" if len(figures) > 1 else ""
        print(f"{what} {figures[-1]}{tried}")
        return found
    busy = taken_by_others() - before
    busy /= (time.monotonic() - clock) * os.cpu_count()
    said = ("Not as on the machine that recorded this page: "
            f"{what} {'; '.join(map(str, figures))} "
            f"(measured {'once' if len(figures) == 1 else f'{len(figures)} times'}, "
            f"while other programs took {busy:.0%} of the processors' time)")
    if os.environ.get(RECORDING) == "1":
        raise AssertionError(said)
    print(said)
    if COLLECTED_IN in os.environ:
        with open(os.environ[COLLECTED_IN], "a", encoding="utf-8") as file:
            file.write(json.dumps({"what": what, "measured": [*map(str, figures)],
                                   "busy": round(busy, 2)}) + "\n")
    return found


def _figure(found):
    if hasattr(found, "overlap"):
        return f"{found.overlap() / found.span():.0%} of the time"
    return str(found)


def taken_by_others():
    """Return the seconds of processor time that other processes have used so far.

    The sum over all processors since the machine started, with the time that a
    hypervisor gave to other machines (`man 5 proc`, on `/proc/stat`). Ended children of
    this process do not count.
    """
    with open("/proc/stat", encoding="ascii") as file:
        ticks = [int(word) for word in file.readline().split()[1:9]]
    user, nice, system, _, _, irq, softirq, steal = ticks
    taken = (user + nice + system + irq + softirq + steal) / os.sysconf("SC_CLK_TCK")
    return taken - sum(os.times()[:4])
