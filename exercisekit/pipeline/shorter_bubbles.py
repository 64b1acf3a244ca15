"""Exercises of the chapter *Shorter bubbles*."""

from collections import Counter
from contextlib import suppress
from itertools import chain

import numpy

from d2l_ext.pipeline.schedule import Op, interleaved, op_clock, peak_held

from ..question import Question, Task, as_python, by_cases
from .micro_batches import limited


def parts(x, W, d_out):
    """Return the backward work of a layer `x @ W.T` in two parts."""
    return lambda: d_out @ W, lambda: d_out.T @ x


def _one_name(x, W, d_out):
    pairs = (d_out.T, W), (d_out, x)
    return [lambda: left.T @ right for left, right in pairs]  # noqa: B023 - the mistake


def _both(x, W, d_out):
    pair = d_out @ W, d_out.T @ x
    return lambda: pair[0], lambda: pair[1]


class _Untouched(numpy.ndarray):
    """None instead of numbers: they can be moved, but not used in a computation.

    The page's arrays hold only numbers; of those, the computation is refused.
    """

    __array_ufunc__ = dot = None

    def __array_function__(self, function, types, args, kwargs):
        if function.__name__.endswith("_like"):  # only its shape is used
            args = [numpy.ones(x.shape) if isinstance(x, _Untouched) else x
                    for x in args]
            return function(*args, **kwargs)
        return super().__array_function__(function, types, args, kwargs)


def _judge_parts(function, n, d_in, d_out):
    rng = numpy.random.RandomState(5)
    shapes = (n, d_in), (d_out, d_in), (n, d_out)
    x, W, d = (rng.randint(-9, 9, shape) * 1.0 for shape in shapes)
    found, right = function(x, W, d), parts(x, W, d)
    if found is not None and not (isinstance(found, (list, tuple)) and len(found) == 2):
        return "it should return a pair of functions."
    if not all(map(callable, found)):
        return "it should return two functions without arguments."
    said = []
    for what, mine, gradient in zip("xW", found, (right[0](), right[1]())):
        its = numpy.asarray(as_python(mine()))
        gradient_of = f"the gradient of {what}"
        if its.shape != gradient.shape:
            shapes = f"{its.shape}, and not {gradient.shape}"
            said += [f"{gradient_of} has the shape {shapes}"]
        elif not numpy.allclose(its, gradient):
            at = tuple(map(int, numpy.argwhere(~numpy.isclose(its, gradient))[0]))
            first = f"{its[at]:g}, and not {gradient[at]:g}"
            said += [f"at {[*at]} {gradient_of} is {first}"]
    if said:
        return f"{'; '.join(said)}."
    for i, what in enumerate("xW"):
        given = [x, W, d]
        with suppress(TypeError):  # not in the page
            given[i] = numpy.full(given[i].shape, None)
        given[i] = given[i].view(_Untouched)
        mine = None
        try:
            mine = function(*given)
            mine[i]()
        except TypeError:
            said += [f"the gradient of {what} takes a product of {what} itself" if mine
                     else f"a product of {what} is taken before a function is called"]
    return f"{'; '.join(said)}." if said else ""


def filled(p, m, most):
    """Schedule an input part, else a forward if there is room, else weights."""
    orders, done = [[] for _ in range(p)], set()
    while len(done) < 3 * p * m:
        now = []
        for s in range(p):
            f, i, w = (
                Op(s, kind, sum(op.kind == kind for op in orders[s]))
                for kind in ("forward", "input", "weights")
            )
            if i.chunk < f.chunk and (s == p - 1 or i._replace(stage=s + 1) in done):
                now.append(i)
            elif (f.chunk < m and f.chunk - w.chunk < most
                  and (s == 0 or f._replace(stage=s - 1) in done)):
                now.append(f)
            elif w.chunk < i.chunk:
                now.append(w)
        for op in now:
            orders[op.stage].append(op)
        done |= {*now}
    return orders


def _one_after_the_other(p, m, most):
    kinds = ("forward", "input", "weights")
    return [[Op(s, kind, i) for i in range(m) for kind in kinds] for s in range(p)]


def _weights_last(p, m, most):
    """Return 1F1B's order of forwards and input parts, then all weights parts."""
    kinds = {"F": "forward", "B": "input"}
    return [
        [Op(s, kinds[kind], i) for kind, i in order]
        + [Op(s, "weights", i) for i in range(m)]
        for s, order in enumerate(limited(p, m, most))
    ]


def _judge_filled(function, p, m, most):
    orders = [[*order] if hasattr(order, "__iter__") else [order]
              for order in function(p, m, most)]
    if not all(isinstance(op, (list, tuple)) and len(op) == 3 for op in chain(*orders)):
        return "each device needs a list of Op, such as Op(0, 'forward', 0)."
    orders = [[Op(*op) for op in order] for order in orders]
    reference = filled(p, m, most)
    for s, (order, wanted) in enumerate(zip(orders, reference)):
        lacking = Counter(wanted) - Counter(order)
        extra = Counter(order) - Counter(wanted)
        if lacking:
            return f"device {s} lacks {next(iter(lacking))}."
        if extra:
            return f"device {s} runs {next(iter(extra))} too often."
    if len(orders) != p:
        return f"the number of devices is {len(orders)}."
    if max(peak_held(orders)) > most:
        return f"the devices hold {peak_held(orders)}."
    try:
        slots, enough = (max(end for *_, end in op_clock(each).values())
                         for each in (orders, reference))
    except ValueError as error:
        return f"{error}."
    return f"it takes {slots} slots; {enough} suffice." if slots > enough else ""


QUESTIONS = {
    1: Question(
        "the number of forwards that device 0 runs first",
        23,
        [
            (7, "That is 1F1B's count, and it deadlocks."),
            (8, "That is 1F1B's count, and it deadlocks."),
            (22, "One more: each turn of the alternation begins with a forward."),
            (15, "Two for each device after it, the first round of its second stage, "
             + "and one more."),
            (16, "That is enough by the clock. The usual schedule hides messages, "
             + "too."),
        ],
    ),
    2: Task(
        "a function `parts(x, W, d_out)`",
        parts,
        [
            (lambda x, W, d_out: (lambda: d_out @ W, lambda: x.T @ d_out),
             "A gradient has the shape of its array."),
            (lambda x, W, d_out: (d_out @ W, d_out.T @ x),
             "These are arrays, computed at once: nothing is left for later."),
            (_both, "Each function computes one product, and only when it is called."),
            (_one_name,
             "A function looks up its names when it is called: after a loop, all see "
             + "the last ones."),
        ],
        judge=by_cases(_judge_parts, "x ({0}, {1}), W ({2}, {1})", [
            (1, 1, 2), (2, 2, 2), (4, 3, 2),
        ]),
    ),
    3: Question(
        "the slots that a device waits in 1F1B and in ZB-H1: a list of two",
        [102, 30],
        [
            ([102, 18], "The formula assumes a short W. What does the clock say?"),
            ([30, 102], "1F1B comes first."),
        ],
    ),
    4: Task(
        "a function `filled(p, m, most)`",
        filled,
        [
            (_one_after_the_other,
             "A device waits for each micro-batch to come back, with nothing to do."),
            (_weights_last,
             "A micro-batch is held until its weights part is done: do some earlier."),
            (lambda p, m, most: interleaved(p, m - m % p, 1),
             "Backward work is in two parts: `input` and `weights`."),
        ],
        judge=by_cases(_judge_filled, "p = {}, m = {}, most = {}", [
            (1, 2, 1), (2, 2, 1), (2, 3, 2), (2, 6, 4), (3, 4, 3), (4, 8, 2),
            (4, 2, 4),
        ]),
    ),
}
