"""Exercises of the chapter *Devices*."""

from ..counts import counted
from ..question import Task

EARLY = "{} wait{s} before the last launch"
COPIED = "{} time{s} copied"


def on_all(launch, devices):
    """Launch the work of all devices, then wait for all."""
    results = [launch(device) for device in devices]
    for result in results:
        result.wait()
    return results


class Work:
    """Simulated work of a device; `log` has the events in order."""

    def __init__(self, device, log):
        self.device, self.log = device, log
        log.append(("launched", device))

    def wait(self):
        self.log.append(("finished", self.device))


def name_of(result):
    return f"the result of {result.device}" if isinstance(result, Work) else result


def run_on_all(function, counts, devices):
    log = []
    found = function(lambda device: Work(device, log), devices)
    log, results = [*log], list(found)  # a generator runs only now: too late
    launches = [i for i, (what, _) in enumerate(log) if what == "launched"]
    early = log[: max(launches, default=0)]
    counts.add(EARLY, sum(what == "finished" for what, _ in early))
    return {
        "the list of launches": sorted(d for what, d in log if what == "launched"),
        "the list of waits": sorted({d for what, d in log if what == "finished"}),
        "the returned list": [name_of(result) for result in results],
    }


def wait_after_each(launch, devices):
    results = []
    for device in devices:
        results.append(launch(device))
        results[-1].wait()
    return results


def return_the_devices(launch, devices):
    on_all(launch, devices)
    return list(devices)


def copied(uses, home, copy):
    """Return the array on each device of `uses`, copied to each of them once."""
    arrays = {0: home}
    for i in uses:
        if i not in arrays:
            arrays[i] = copy(i)
    return [arrays[i] for i in uses]


def run_copied(function, counts, uses):
    copy = counts.calls(COPIED, lambda i: f"its copy on {i}")
    return list(function(uses, "the array on 0", copy))


def copied_without_home(uses, home, copy):
    arrays = {i: copy(i) for i in sorted(set(uses))}
    return [arrays[i] for i in uses]


QUESTIONS = {
    2: Task(
        "a function `on_all(launch, devices)`",
        on_all,
        [
            (wait_after_each,
             "It waits right after each launch, so the other devices start only then. "
             + "A generator launches just as late: make a list first."),
            (lambda launch, devices: [launch(device) for device in devices],
             "It does not wait: when it returns, the work is not finished."),
            (lambda launch, devices:
             [result.wait() for result in [launch(device) for device in devices]],
             "`wait` returns nothing: the list has to hold the results themselves."),
            (return_the_devices,
             "The list has to hold what `launch` returns, not the devices."),
        ],
        judge=counted(on_all, run_on_all, "Devices {}",
                      [([0],), ([0, 1],), ([2, 0, 1],)], about=[EARLY]),
    ),
    3: Task(
        "a function `copied(uses, home, copy)`",
        copied,
        [
            (lambda uses, home, copy: [copy(i) for i in uses],
             "It copies for each use, even to the device that has the array."),
            (lambda uses, home, copy: [copy(i) if i else home for i in uses],
             "It copies for each use: keep the copies that you have made."),
            (copied_without_home,
             "The array lives on device 0, which needs no copy."),
        ],
        judge=counted(copied, run_copied, "Uses {}",
                      [([0],), ([1],), ([1, 1],), ([1, 0, 1, 1],), ([2, 1, 2, 0, 4],)],
                      about=[COPIED]),
    ),
}
