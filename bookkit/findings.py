"""Findings: what was measured here, printed beside what the text says of it.

A book asserts structure (order, counts, bytes, equality), which is the same on every
machine. What only a measurement can show may come out otherwise on another machine:
then a reader is told what was found here, and the run goes on. Only an author who
records outputs is stopped, because the text beside them would be false.
"""

import json
import os
import time

#: Set to 1 where outputs are recorded (`make rerun`): a finding that fails raises.
RECORDING = "D2L_EXT_RECORDING"
#: Names a file that gets one line of JSON for each finding that came out otherwise.
COLLECTED_IN = "D2L_EXT_FINDINGS"


def tell(what, holds, measure, first=None, figure=None, tries=5):
    """Print the finding `what`, with its figure, if it holds; return the measurement.

        pair = tell("Both devices are at work for", overlapping, ask_both, first=pair)

    `what`: the start of a line that the figure completes. `holds`: a function of a
    measurement, whether the finding is true of it. `measure`: a function without
    arguments that returns a measurement. `first`: one that is there already. While the
    finding does not hold, it is measured again, up to `tries` measurements in all, with
    growing pauses, because another program may have had the processors. `figure`: a
    function that gives a measurement as a short text; default: for a timeline, the
    share of the time in which its devices worked together, otherwise `str`.

    If it never holds, a line says so with the figures of all tries and the share of the
    processors that other programs took; it is also added to the file that
    `D2L_EXT_FINDINGS` names. With `D2L_EXT_RECORDING=1`, which `make rerun` sets,
    `AssertionError` is raised instead.

    Developed in the chapter *Devices*.
    """
    figure = figure or _figure
    clock, before = time.monotonic(), taken_by_others()
    found = measure() if first is None else first
    figures = [figure(found)]
    while not holds(found) and len(figures) < tries:
        time.sleep(0.25 * len(figures))
        found = measure()
        figures.append(figure(found))
    if holds(found):
        tried = f" (in try {len(figures)})" if len(figures) > 1 else ""
        print(f"{what} {figures[-1]}{tried}")
        return found
    busy = taken_by_others() - before
    busy /= (time.monotonic() - clock) * os.cpu_count()
    said = ("Not as on the machine that recorded this page: "
            f"{what} {'; '.join(map(str, figures))} "
            f"(measured {len(figures)} times, while other programs took {busy:.0%} of "
            "the processors' time)")
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
    """Seconds of processor time that other processes have had so far.

    Of all processors together, since the machine was started, with what a hypervisor
    gave to other machines (`man 5 proc`, on `/proc/stat`). Processes that this one
    started and that have ended do not count.
    """
    with open("/proc/stat", encoding="ascii") as file:
        ticks = [int(word) for word in file.readline().split()[1:9]]
    user, nice, system, _, _, irq, softirq, steal = ticks
    taken = (user + nice + system + irq + softirq + steal) / os.sysconf("SC_CLK_TCK")
    return taken - sum(os.times()[:4])
