"""Exercises of the chapter *Why is there no speed-up?*."""

import contextlib
import queue
import threading
import time
from numbers import Number

from ..counts import WAITS, counted
from ..question import Question, Task, by_cases, compared, raises, shown


def mean_loss(losses):
    """The mean of arrays of one number, for which Python waits once."""
    total = losses[0]
    for loss in losses[1:]:
        total = total + loss
    return float(total) / len(losses)


def _run_mean_loss(function, counts, n):
    from mxnet import np, npx  # when it is asked for: it takes seconds to load

    losses = counts.keep(*(np.array(float(i * i + 1)) for i in range(n)))
    npx.waitall()
    with counts.waits():
        found = function(list(losses))
    kind = "number" if isinstance(found, Number) else type(found).__name__
    return {"the type": kind, "the mean": found}


def both_end(n, other):
    """Shares of two equal devices, the second of which also has another job."""
    return [(n + other) // 2, (n - other) // 2]


def ahead(load, depth=2):
    """A function that gives what `load` returns, in order, loaded in a thread."""
    ready = queue.Queue(depth)

    def work():
        while True:
            try:
                ready.put((load(), None))
            except Exception as error:  # noqa: BLE001 - it is passed on
                return ready.put((None, error))

    def take():
        result, error = ready.get()
        if error is not None:
            raise error
        return result

    threading.Thread(target=work, daemon=True).start()
    return take


def _ahead_without_errors(load, depth=2):
    results = queue.Queue(depth)

    def work():
        with contextlib.suppress(ZeroDivisionError):  # as if the thread had ended
            while True:
                results.put(load())

    threading.Thread(target=work, daemon=True).start()
    return results.get


def _loads_first(load, depth=2):
    ready = [load() for _ in range(depth)]
    return lambda: ready.pop(0) if ready else load()


def _soon(true, seconds):
    """Whether `true()` is so within `seconds`."""
    end = time.monotonic() + seconds
    while not true() and time.monotonic() < end:
        time.sleep(0.005)
    return true()


def _try_ahead(function, depth):
    """What is wrong with eight results of a `load`, of which the last is an error."""
    called, got = [], []

    def load():
        called.append(len(called))
        return called[-1] if len(called) < 8 else 1 // 0

    try:
        take = function(load, depth)
        got.append(take())
        if not _soon(lambda: len(called) > depth, 0.3):
            return f"after one result, load was called {len(called)} times: not ahead."
        if _soon(lambda: len(called) > depth + 2, 0.05):
            return f"load was called {len(called)} times when one result was taken."
        for _ in range(7):
            got.append(take())
    except ZeroDivisionError:
        right = got == [*range(7)]
        return "" if right else f"the results are {got}, and then an error."
    except Exception as error:  # noqa: BLE001 - the learner's code may raise anything
        return f"it {raises(error)}"
    return f"the results are {shown(got[:7])}, and nothing is raised."


def _try_for_a_second(function, depth):
    said = queue.Queue()
    threading.Thread(
        target=lambda: said.put(_try_ahead(function, depth)), daemon=True
    ).start()
    try:
        return said.get(timeout=1)
    except queue.Empty:
        return "where load raises an error, it waits for ever."


def _judge_ahead(function):
    """The first that is wrong is enough: each that waits for ever takes a second."""
    return next(by_cases(_try_for_a_second, "depth {}", [(2,), (1,)])(function))


QUESTIONS = {
    1: Question(
        "the number of waits in a step",
        1,
        [
            (2, "A single call waits for all devices."),
            (0, "`npx.waitall()` is itself a wait."),
        ],
    ),
    2: Task(
        "a function `mean_loss(losses)`",
        mean_loss,
        [
            (lambda losses: sum(float(loss) for loss in losses) / len(losses),
             "`float` waits for each loss, as `asnumpy` does: add the arrays, and ask "
             + "for one number."),
            ("float(total) / len(losses)", "total / len(losses)",
             "That is an array still. A Python number has to be waited for, once."),
            ("float(total)", "float(total.copy().wait_to_read() or total)",
             "`float` waits by itself: another wait before it adds nothing."),
            ("total + loss", "total.__iadd__(loss)",
             "Adding in place (+=) writes into the first of the losses."),
            (" / len(losses)", "", "That is the sum."),
            ("losses[1:]", "losses[1:-1]", "The last loss is left out."),
        ],
        judge=counted(mean_loss, _run_mean_loss, "{} losses", [(1,), (2,), (7,)],
                      about=[WAITS], tolerance=1e-6),
    ),
    3: Task(
        "a function `both_end(n, other)`",
        both_end,
        [
            (lambda n, other: [n // 2, n // 2],
             "Device 1 has the other job as well, and ends later by that."),
            (lambda n, other: [(n - other) // 2, (n + other) // 2],
             "The busy device gets more. Which one is it?"),
            (lambda n, other: [n - other, other],
             "That is right for one pair of numbers: when do both end?"),
            ("(n - other) // 2]", "n // 2]",
             "These are more than n examples: what one gets more the other gets less."),
            ("[(n + other) // 2, (n - other) // 2]", "[n // 2 + other, n // 2 - other]",
             "The whole job is moved over. Half of it makes them equal."),
            ("[(n + other) // 2,", "[n // 2,",
             "The examples that the busy device is spared go to the other one."),
        ],
        judge=compared(both_end, [(2, 0), (3, 1), (64, 0), (256, 128), (100, 98)]),
    ),
    5: Task(
        "a function `ahead(load, depth)`",
        ahead,
        [
            ("raise error", "return error",
             "The error comes as if it were a result: raise it where it is taken."),
            ("raise error", "raise RuntimeError(str(error))",
             "What is raised is another error: let the loop see the one of load."),
            ("queue.Queue(depth)", "queue.Queue()",
             "Without a limit it loads all that there is, and memory fills up."),
            (_loads_first,
             "The first results are loaded ahead, and nothing after them: a thread "
             + "has to go on."),
            (lambda load, depth=2: load,
             "Each result is loaded when it is asked for, while the devices wait."),
            (_ahead_without_errors,
             "The thread ended with the error, and nobody was told: put it into the "
             + "queue."),
        ],
        judge=_judge_ahead,
    ),
}
