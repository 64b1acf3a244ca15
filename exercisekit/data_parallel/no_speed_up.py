"""Exercises of the chapter *Why is there no speed-up?*."""

import queue
import threading
import time
from numbers import Number

from ..counts import WAITS, counted
from ..question import Question, Task, by_cases, compared, raises, shown


def mean_loss(losses):
    return float(sum(losses)) / len(losses)


def _run_mean_loss(function, counts, n):
    from mxnet import np, npx  # when it is asked for: it takes seconds to load

    npx.set_np()
    (losses,) = counts.keep([np.array(i * i + 0.123) for i in range(n)])
    npx.waitall()
    with counts.waits():
        found = function(losses)
    kind = "number" if isinstance(found, Number) else type(found).__name__
    return {"the type": kind, "the mean": found}


def _into_the_first(losses):
    total = losses[0]
    for loss in losses[1:]:
        total += loss
    return float(total) / len(losses)


def both_end(n, other):
    return [(n + other) // 2, (n - other) // 2]


def ahead(load, depth=2):
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


def _without_errors(load, depth=2):
    def ends_in_silence():
        try:
            return load()
        except ZeroDivisionError:
            raise SystemExit from None  # of which a thread says nothing

    return ahead(ends_in_silence, depth)


#: Seconds to wait for wrong code, and seconds in which right code does nothing.
PATIENCE, QUIET = 5, 0.2


def _soon(true, seconds):
    """Return whether `true()` becomes true within `seconds`."""
    end = time.monotonic() + seconds
    while not true() and time.monotonic() < end:
        time.sleep(0.005)
    return true()


def _ahead_of_one(threads, depth):
    """Return the fault in `load`'s calls after one result, or ""; `threads`: theirs."""
    own = threads.count(threading.current_thread())
    if own:
        return "load was called in the loop's own thread."
    if not _soon(lambda: len(threads) > depth, PATIENCE):
        return (f"calls of load after the first result: {len(threads)}; with depth "
                f"{depth}, more are expected.")
    if _soon(lambda: len(threads) > depth + 2, QUIET):
        return (f"load was called {len(threads)} times although only one result was "
                f"taken; the depth is {depth}.")
    return ""


def _try_ahead(function, depth, failed):
    """Return the fault of a prefetcher, or "", for eight results and then an error of
    `load`.

    The judge checks the loading thread and the number of calls: at most `depth` results
    wait in a queue, one is in use, and one is being loaded. `failed`: a list that gets
    the thread in which `load` raises.
    """
    threads, got = [], []

    def load():
        threads.append(threading.current_thread())
        if len(threads) > 8:
            failed.append(threads[-1])
            raise ZeroDivisionError("division by zero")
        return len(threads) - 1  # the first result is 0

    try:
        take = function(load, depth)
        got.append(take())
        problem = _ahead_of_one(threads, depth)
        if problem:
            return problem
        for _ in range(8):
            if len(got) == 7:  # load may have failed while a result still waits
                _soon(lambda: failed, QUIET)
            got.append(take())
    except ZeroDivisionError:
        right = got == [*range(8)]
        return "" if right else f"the results are {got}, and then the error."
    except Exception as error:  # noqa: BLE001 - the learner's code may raise anything
        return f"it {raises(error, function)}"
    return f"the results are {shown(got[:8])}, and the error of load is not raised."


def _try_with_patience(function, depth):
    said, failed = queue.Queue(), []
    threading.Thread(
        target=lambda: said.put(_try_ahead(function, depth, failed)), daemon=True
    ).start()
    # Once the failed thread has ended, its error can no longer be passed on.
    _soon(lambda: said.qsize() or failed and not failed[0].is_alive(), 2 * PATIENCE)
    try:
        return said.get(timeout=PATIENCE * QUIET)
    except queue.Empty:
        return f"it waits forever{' after load has raised an error' * bool(failed)}."


def _judge_ahead(function):
    """Return the first fault only, or "".

    A call that waits forever takes a second if the thread that calls `load` has
    ended with its error, and otherwise eleven.
    """
    return next(by_cases(_try_with_patience, "depth {}", [(4,), (1,)])(function))


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
             "`float` waits for each loss, as `asnumpy` does. Add the arrays, and "
             + "convert once."),
            (lambda losses: sum(losses) / len(losses),
             "That is still an array. Convert it to a Python number, once."),
            (_into_the_first, "`+=` writes into one of the losses."),
        ],
        judge=counted(mean_loss, _run_mean_loss, "{} losses", [(1,), (2,), (7,)],
                      about=[WAITS], tolerance=1e-6),
    ),
    3: Task(
        "a function `both_end(n, other)`",
        both_end,
        [
            (lambda n, other: [n // 2, n // 2],
             "Device 1 also has the other job, so it ends later."),
            (lambda n, other: [(n - other) // 2, (n + other) // 2],
             "The busy device gets more examples. It has to get fewer."),
            (lambda n, other: [n // 2 + other, n // 2 - other],
             "That makes up for the whole job. Half of it makes both devices equal."),
        ],
        judge=compared(both_end, [(2, 0), (3, 1), (64, 0), (256, 128), (100, 98)]),
    ),
    5: Task(
        "a function `ahead(load, depth)`",
        ahead,
        [
            (lambda load, depth=2: ahead(load, depth=0),
             "Limit the queue to `depth` results: without a limit, the thread loads "
             + "everything there is, and memory fills up."),
            (lambda load, depth=2: load,
             "While this thread loads, it enqueues no work for the devices."),
            (_without_errors,
             "The thread ends with the error, and the loop never learns of it: put "
             + "the error into the queue."),
        ],
        judge=_judge_ahead,
    ),
}
