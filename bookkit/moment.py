"""Statements that hang on the moment: measured again until they can be told."""

import os
import time

#: Of the processors' time. If other programs take more, times need not mean anything.
TOO_BUSY = 0.1


def tell(what, holds, measure, first=None, figure=None, tries=5):
    """Print `what` and by how much if it holds of a measurement; return that.

        together = tell("they overlap:", overlapping, ask_both, first=together)

    `holds`: a function of a measurement, whether the statement is true of it.
    `measure`: a function without arguments that returns a measurement. `first`: one
    that is there already. While the statement does not hold, it is measured again, up
    to `tries` measurements in all, with growing pauses: something else may have had
    the processors. `figure`: a function that says in short what was measured; default:
    how long the devices of a timeline worked together, and of anything else its `str`.

    If it never holds, that is no accident: `AssertionError`, with the figures of all
    tries. But if other programs took more than a tenth of the processors' time
    meanwhile, nothing is raised: a line says that it cannot be told now, and why.

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
        print(f"{what} yes, {figures[-1]}{tried}")
        return found
    busy = taken_by_others() - before
    busy /= (time.monotonic() - clock) * os.cpu_count()
    seen = f"measured {tries} times: {'; '.join(map(str, figures))}"
    if busy <= TOO_BUSY:
        raise AssertionError(f"{what} False, {seen}")
    print(f"{what} cannot be told now: other programs take {busy:.0%} of the "
          f"processors' time. Run this again without them; {seen}")  # fmt: skip
    return found


def _figure(found):
    if hasattr(found, "overlap"):
        return f"{found.overlap() / found.span():.0%} of the time together"
    return str(found)


def taken_by_others():
    """Seconds of processor time that others than this process have had so far.

    Of all processors together, since the machine was started, with what a hypervisor
    gave to other machines (`man 5 proc`, on `/proc/stat`). Processes that this one
    started and that have ended are no others.
    """
    with open("/proc/stat", encoding="ascii") as file:
        ticks = [int(word) for word in file.readline().split()[1:9]]
    user, nice, system, _, _, irq, softirq, steal = ticks
    taken = (user + nice + system + irq + softirq + steal) / os.sysconf("SC_CLK_TCK")
    return taken - sum(os.times()[:4])
