"""In the page's Python: runs the reader's code, and has it judged.

The judges import NumPy, and some MXNet; a page has neither. `arrays` and `promises`
take their names, and the bytes that `arrays` counts stand for those of `tracemalloc`.
"""

import ast
import contextlib
import io
import json
import linecache
import sys
import traceback
from types import ModuleType

from . import arrays, promises

#: The name of the reader's text, in messages.
TEXT = "your code"
#: Characters of what is printed that are shown, from its beginning and its end; calls
#: of an error that are shown, also from both.
LONGEST, CALLS = 10_000, 6
#: Devices and rounds that a figure has room for.
DEVICES, ROUNDS = 16, 60


def stand_in():
    """Give the page's arrays the names under which judges and readers import them."""
    memory = ModuleType("tracemalloc")
    memory.__dict__.update(
        start=lambda: None, stop=lambda: None, is_tracing=lambda: True,
        get_traced_memory=lambda: (arrays.used.now, arrays.used.most),
        reset_peak=lambda: setattr(arrays.used, "most", arrays.used.now))
    devices = ModuleType("d2l_ext.devices")
    devices.try_all_devices = promises.try_all_devices
    diagnose = ModuleType("d2l_ext.data_parallel.diagnose")
    diagnose.blocking_calls = promises.blocking_calls
    sys.modules.update({
        "numpy": arrays, "numpy.random": arrays.random, "mxnet": promises,
        "tracemalloc": memory, "d2l_ext.devices": devices,
        "d2l_ext.data_parallel.diagnose": diagnose})


def run_and_judge(chapter, number, code):
    """Run `code`, judge what it defines; JSON of `printed`, `said`, and `runs`.

    The number 0 is a cell of the chapter, for which there is no judge.

    `said` begins like the text of `check`, "right", "not yet" or "no answer yet"; it is
    "" if the code did not run. For 0 it is "", or says that nothing was printed. `runs`
    are messages: see `ExchangeLog`.
    """
    from exercisekit.answers import questions
    from exercisekit.question import Task, says

    watch, out = ExchangeLog(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(out):
        names, said = _run(code), ""
        if names is not None and not number:
            said = "" if out.getvalue() else "It ran, and printed nothing."
        elif names is not None:
            question = questions(chapter)[chapter, number]
            is_code = isinstance(question, Task)
            wanted = question.right.__name__ if is_code else "answer"
            with watch.watching():
                said = says(question, _answer(names, wanted, is_code))
    printed = out.getvalue()
    if len(printed) > LONGEST:
        half = LONGEST // 2
        printed = (f"{printed[:half]}\n… {len(printed):,} characters, of which "
                   f"{LONGEST:,} are shown …\n{printed[-half:]}")
    return json.dumps({"printed": printed, "said": said, "runs": watch.shown()})


def _run(code):
    """Return the names the code defines, or None after printing its error."""
    lines = code.splitlines(keepends=True)
    linecache.cache[TEXT] = (len(code), None, lines, TEXT)
    names = {"__name__": "__main__"}
    try:
        tree = ast.parse(code, TEXT)
        last = None
        if tree.body and isinstance(tree.body[-1], ast.Expr):
            last = tree.body.pop()
        exec(compile(tree, TEXT, "exec"), names)  # noqa: S102 - the reader's own
        if last:  # its value is shown, as a notebook does
            value = eval(compile(ast.Expression(last.value), TEXT, "eval"), names)
            if value is not None:
                print(repr(value))
    except MemoryError:
        print("MemoryError: the code needs more memory than a page has.")
    except BaseException as error:  # noqa: BLE001 - SystemExit as well
        _tell(error)
    else:
        return names
    return None


def _tell(error):
    here = [f for f in traceback.extract_tb(error.__traceback__) if f.filename == TEXT]
    for i, frame in enumerate(here):
        if min(i, len(here) - 1 - i) < CALLS // 2:
            print(f"line {frame.lineno}:  {(frame.line or '').strip()}")
        elif i == CALLS // 2:
            print(f"… {len(here) - CALLS} more calls …")
    print("".join(traceback.format_exception_only(type(error), error)).strip())


def _answer(names, wanted, is_function):
    """Return the object `names` has as `wanted`; else the code's last function."""
    if wanted in names:
        return names[wanted]
    own = [v for v in names.values() if callable(v) and getattr(
        v, "__globals__", None) is names]
    return own[-1] if own and is_function else None


class ExchangeLog:
    """Records the reader's calls of `exchange`: `runs`, a list of rounds each.

    A round is a list of [from, to, numbers].
    """

    def __init__(self):
        self._runs = {}

    @contextlib.contextmanager
    def watching(self):
        kept = [(kind, kind.exchange) for kind in _exchanging()]
        for kind, exchange in kept:
            kind.exchange = self._noting(exchange)
        try:
            yield
        finally:
            for kind, exchange in kept:
                kind.exchange = exchange

    def _noting(self, exchange):
        from exercisekit.counts import numbers_in

        runs = self._runs

        def noting(counts, messages):
            delivered = exchange(counts, messages)
            caller = sys._getframe(1)  # the reader's code, or a judge's `exchange`
            if TEXT in (caller.f_code.co_filename, caller.f_back.f_code.co_filename):
                _, rounds = runs.setdefault(id(counts), (counts, []))
                rounds.append([[int(i), int(j), int(numbers_in(x))]
                               for (i, j), x in messages.items()])
            return delivered

        return noting

    def shown(self):
        """Return the rounds of the case with the most devices that fits the page."""
        runs = [[r for r in rounds if r] for _, rounds in self._runs.values()]
        runs = [rounds for rounds in runs if rounds and len(rounds) <= ROUNDS
                and _devices(rounds) <= DEVICES]
        return max(runs, key=_devices, default=[])


def _devices(rounds):
    return 1 + max(max(i, j) for messages in rounds for i, j, _ in messages)


def _exchanging():
    from exercisekit.counts import Counts

    wires = sys.modules.get("exercisekit.scale.puzzles.messages")
    return [Counts] + ([wires.Wire] if wires else [])
