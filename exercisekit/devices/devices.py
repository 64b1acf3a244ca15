"""Exercises of the chapter *Devices*."""

from ..counts import counted
from ..question import Task

EARLY = "{} wait{s} before the last device is asked"
COPIED = "{} time{s} copied"


def waited(result):
    result.wait()
    return result


def on_all(ask, devices):
    """Ask all, then wait for all."""
    return [*map(waited, [ask(device) for device in devices])]


class Asked:
    """What stands for the work of a device; `log` has what happened, in order."""

    def __init__(self, device, log):
        self.device, self.log = device, log
        log.append(("asked", device))

    def wait(self):
        self.log.append(("done", self.device))


def run_on_all(function, counts, devices):
    log = []
    results = list(function(lambda device: Asked(device, log), devices))
    last = max((i for i, (what, _) in enumerate(log) if what == "asked"), default=0)
    counts.add(EARLY, sum(what == "done" for what, _ in log[:last]))
    return {
        "what is asked": sorted(device for what, device in log if what == "asked"),
        "what has been waited for": sorted({d for what, d in log if what == "done"}),
        "the list": [getattr(result, "device", result) for result in results],
    }


def copied(uses, home, copy):
    """The array on each device of `uses`, copied to each of them once."""
    there = {0: home}
    for i in uses:
        if i not in there:
            there[i] = copy(i)
    return [there[i] for i in uses]


def run_copied(function, counts, uses):
    copy = counts.calls(COPIED, lambda i: f"its copy on {i}")
    return list(function(uses, "the array on 0", copy))


QUESTIONS = {
    2: Task(
        "a function of ask and devices",
        on_all,
        [
            (lambda ask, devices: [waited(ask(device)) for device in devices],
             "A wait right after each question: the others are asked only then. "
             + "A generator asks as late as that, too: make a list first."),
            ("[*map(waited, [ask(device) for device in devices])]",
             "[ask(device) for device in devices]",
             "Nobody waits: when it returns, the results are not there."),
            ("[ask(device) for device in devices])]",
             "[ask(device) for device in devices][-1:])]",
             "Only the last is waited for and returned. The others may take longer."),
            ("[ask(device) for device in devices]",
             "[ask(device) for device in devices[1:]]",
             "The first device is left out."),
            ("in devices])]", "in devices])][::-1]",
             "The list has another order than the devices."),
            ("map(waited, [ask", "map(lambda result: result.wait(), [ask",
             "`wait` returns nothing: the list has to hold the results themselves."),
        ],
        judge=counted(on_all, run_on_all, "Devices {}",
                      [([0],), ([0, 1],), ([2, 0, 1],)], about=[EARLY]),
    ),
    3: Task(
        "a function of uses, home and copy",
        copied,
        [
            (lambda uses, home, copy: [copy(i) for i in uses],
             "It is copied for each use, and even to where it lives."),
            (lambda uses, home, copy: [copy(i) if i else home for i in uses],
             "It is copied for each use: keep what a device has got."),
            ("{0: home}", "{}", "The array lives on device 0: that needs no copy."),
            ("if i not in there:", "if i not in there or i != uses[0]:",
             "A copy that was made before is made again."),
            ("for i in uses]", "for i in sorted(uses)]",
             "The list has to be in the order of the uses."),
            ("for i in uses]", "for i in dict.fromkeys(uses)]",
             "A device that uses the array twice is in the list twice."),
            ("for i in uses:", "for i in range(max(uses) + 1):",
             "It is copied to devices that do not use it."),
            ("[there[i] for i in uses]", "list(there.values())",
             "That is what there is: an array for each use is asked for, in order."),
        ],
        judge=counted(copied, run_copied, "Uses {}",
                      [([0],), ([1],), ([1, 1],), ([1, 0, 1, 1],), ([2, 1, 2, 0, 4],)],
                      about=[COPIED]),
    ),
}
