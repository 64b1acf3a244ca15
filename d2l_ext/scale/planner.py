"""Which plan? All layouts of a decoder on given devices, and what each costs.

    candidates    meshes of k devices, and for each axis a way to use it
    memory        what a device holds when backward begins, counted from the plan
    Machine       five constants; a plan's seconds are a sum of what it counts
    fastest       the plan with the least seconds among those that fit

Nothing runs here: a `compiler.Plan` says what each device computes, keeps and sends.
"""

from collections import Counter
from dataclasses import dataclass
from itertools import chain, product
from math import prod

import numpy

from ..checks import at_least_zero, whole_number
from ..meshes import programs
from ..meshes.compiler import Plan, program
from .fit import least_squares

#: Ways to use each axis of a mesh. Only one of a row is used at a time.
AXES = {"data": ("data", "ZeRO 3"), "tensor": ("tensor", "sequence"),
        "seq": ("all-to-all",), "pipeline": ("pipeline",)}
#: Rounds of a collective among k devices.
ROUNDS = {"allreduce": lambda k: 2 * (k - 1), "send": lambda k: 1}


def candidates(of, batch, T, k):
    """Return all plans of the decoder `of` on `k` devices, a dict of `Plan`s by name.

    `batch` texts of `T` tokens. A plan's name lists its ways and their lengths, "data
    (2) × tensor (4)". Plans that the compiler refuses are left out, such as those whose
    tensor axis does not divide the heads. A pipeline has one micro-batch, so its stages
    work one after another; a decoder with tied weights has none.
    """
    whole_number("k", k)
    shapes, weights = programs.shapes(of, batch, T)
    ops, found = programs.decoder(of), {}
    divisors = [n for n in range(1, k + 1) if k % n == 0]
    for lengths in product(divisors, repeat=len(AXES)):
        sizes = {axis: n for axis, n in zip(AXES, lengths) if n > 1}
        if prod(lengths) != k:
            continue
        for ways in product(*(AXES[axis] for axis in sizes)):
            name = " × ".join(f"{way} ({n})" for way, n in zip(ways, sizes.values()))
            try:
                where = layouts(of, shapes, weights, sizes, ways)
                found[name or "one device"] = Plan(
                    ops, shapes, sizes or {"data": 1}, where, weights,
                    again="ZeRO 3" in ways)
            except ValueError:
                continue
    return found


def layouts(of, shapes, weights, sizes, ways):
    """Return the layouts on a mesh with one of the ways along each axis: strings by
    name.

    Raises `ValueError` if two ways cut the same axis of an array, for more stages than
    blocks, and for tied weights on more than one stage.
    """
    if sizes.get("pipeline", 1) > of.layers:
        raise ValueError(f"{of.layers} blocks cannot fill {sizes['pipeline']} stages")
    if sizes.get("pipeline", 1) > 1 and of.tied:
        raise ValueError("tied weights would be on two stages, first and last: use a "
                         "decoder with tied=False")
    parts = {"tensor": programs.tensor(of), "sequence": programs.sequence(of),
             "all-to-all": programs.ulysses(of), "data": programs.data()}
    parts["ZeRO 3"] = parts["data"]
    chosen = [parts[way] for way in ways if way in parts]
    if "data" in sizes:  # arrays of another way are cut along their texts as well
        cut = {name for part in chosen for name in part} - {*weights}
        chosen.append({name: "data" for name in cut - {"tokens", "targets"}})
    where = {}
    for name in dict.fromkeys(chain(*chosen)):
        where[name] = _together(name, [part[name] for part in chosen if name in part])
    if "ZeRO 3" in ways:
        where.update({name: _shard(where.get(name, ""), shapes[name], sizes["data"])
                      for name in weights})
    if "pipeline" in sizes:
        where.update({name: _at_stage(name, where, shapes[name], of, sizes["pipeline"])
                      for name in weights})
    return where


def _together(name, texts):
    """Return one layout of several that cut different axes of an array."""
    both = [[part.split() for part in text.split("->")] for text in texts]
    found = []
    for phase in range(max(map(len, both))):  # at rest, in use
        rows = [phases[min(phase, len(phases) - 1)] for phases in both]
        width = max(map(len, rows))
        columns = zip(*(row + ["."] * (width - len(row)) for row in rows))
        cuts = [[word for word in column if word != "."] for column in columns]
        if any(len(own) > 1 for own in cuts):
            raise ValueError(f"{name}: {' and '.join(texts)} cut the same axis")
        found.append(" ".join(own[0] if own else "." for own in cuts))
    return " -> ".join(found)


def _shard(text, shape, k):
    """Return a weight cut along `data` at rest too, on its first axis it can cut."""
    use = text.split() or ["."] * len(shape)
    free = [i for i, n in enumerate(shape) if use[i] == "." and not n % k]
    rest = [*use]
    for i in free[:1]:
        rest[i] = "data"
    return f"{' '.join(rest)} -> {' '.join(use)}"


def _at_stage(name, where, shape, of, stages):
    block = name.partition(".")[0]
    stage = 0 if name == "table" else stages - 1
    if block.isdigit():
        stage = int(block) * stages // of.layers
    lies = where.get(name) or " ".join("." * len(shape))
    return " -> ".join(f"{part} @pipeline={stage}" for part in lies.split(" -> "))


# ---- Memory ----


def memory(plan, itemsize=4, states=0, gradients=True):
    """Return the bytes of the fullest device: its arrays when backward begins.

    Counts the inputs and all that backward needs; also room for the gradients, unless
    `gradients` is false. `itemsize`: bytes of a number. `states`: the numbers that an
    optimizer keeps per parameter, in float32: 2 for Adam, `ValueError` below 0.
    Developed in the chapter *Which plan? A planner for layouts and meshes*.
    """
    at_least_zero("states", states)
    last = {v: n for n, s in enumerate(plan.forward) for v in s.inputs}
    again = {v for step in plan.backward for v in step.inputs}
    made = {v for step in plan.forward for v in step.outputs} - {*plan.inputs.values()}
    alive = [v for v in made if v in again or v not in last]
    held = Counter()
    for value in {*alive, *plan.inputs.values(), plan.out}:
        size = 4 if value.name in plan.integers else itemsize
        held.update({at: size * local_size(value, plan) for at in devices(value, plan)})
    for name, value in plan.gradients.items():
        more = gradients * itemsize + 4 * states
        for at in devices(plan.inputs[name], plan):
            held[at] += int(more * local_size(value, plan))
    return max(held.values())


def local_size(value, plan):
    """Return the numbers of a `Value` that one device has."""
    return prod(value.layout.share(value.shape, plan.sizes))


def devices(value, plan):
    """Return the coordinates of the devices that have a part of a `Value`."""
    places = product(*map(range, plan.sizes.values()))
    fixed = dict(value.layout.at)
    axes = list(plan.sizes)
    return [at for at in places
            if all(at[axes.index(axis)] == i for axis, i in fixed.items())]


# ---- Time ----


@dataclass(frozen=True)
class Machine:
    """The speed of a device, in five constants; the `cores` that all devices share.

    `flop`, `byte`: seconds per operation of a product, and per byte that any
    operation reads or writes. `call`: per operation on one device, in Python and in
    the engine. `alpha`, `beta`: of messages, per message and per byte. `cores`: None
    if each device computes and sends by itself, as GPUs do.
    """

    flop: float
    byte: float
    call: float
    alpha: float
    beta: float
    cores: int = None

    def seconds(self, plan, itemsize=4):
        """Return the seconds of a step, forward and backward, without overlap."""
        constants = self.flop, self.byte, self.call, self.alpha, self.beta
        return sum(map(numpy.multiply, step_counts(plan, self.cores, itemsize),
                       constants))


def step_counts(plan, cores=None, itemsize=4):
    """Return the counts of a step, one for each constant of a `Machine`: a tuple.

    They count operations of products, bytes read and written, calls, messages and
    bytes sent. Steps follow one another; devices work at the same time, as far as
    there are cores. With `cores`, the calls and messages of all devices are added up,
    because one Python process issues them.
    """
    total = numpy.zeros(5)
    for step in [*plan.forward, *plan.backward]:
        values = [v for v in (*step.inputs, *step.outputs) if v is not None]
        busy = len(devices(values[-1], plan))
        turns = busy / min(busy, cores or busy)
        total += numpy.multiply(
            _of_step(step, plan, itemsize),
            (turns, turns, busy if cores else 1, busy if cores else 1, turns))
    return tuple(total)


def _of_step(step, plan, itemsize):
    """Return the five numbers of one device in a step."""
    def size(name):  # of a number in this array
        return 4 if name in plan.integers else itemsize

    rows = plan.messages(step)
    rounds = sum(ROUNDS.get(kind, lambda k: k - 1)(plan.sizes[along])
                 for kind, along, *_ in rows)
    sent = sum(n * size(name) for _, _, name, n, _ in rows)
    if step.kind == "move":
        return 0, 0, not rows, rounds, sent
    values = [v for v in (*step.inputs, *step.outputs) if v is not None]
    touched = sum(size(v.name) * local_size(v, plan) for v in values)
    if step.kind == "sum" or step.op.kind != "einsum" or len(step.op.terms) == 1:
        return 0, touched, 1, rounds, sent
    letters = dict(chain(*(zip(term, v.layout.share(v.shape, plan.sizes))
                           for term, v in zip(step.op.terms, step.inputs))))
    products = 1 if step.kind == "op" else sum(v is not None for v in step.outputs)
    return 2 * prod(letters.values()) * products, touched, products, 0, 0


#: Programs that tell the constants apart: the text, the shapes of its inputs, and the
#: layouts on two devices.
PROBES = {
    "a product": ("y = einsum nd,df->nf x w", {"x": (512, 256), "w": (256, 512)},
                  {"x": "t ."}),
    "an elementwise operation": (
        "y = gelu nf->nf x", {"x": (1024, 512)}, {"x": "t ."}),
    "small operations": (
        "\n".join(f"y{i + 1} = times:0.9 n->n y{i}" for i in range(20)),
        {"y0": (4,)}, {}),
    "small sums": (
        "\n".join(f"y{i + 1} = einsum nd,d->n w y{i}" for i in range(8)),
        {"w": (4, 4), "y0": (4,)}, {"w": ". t", **{f"y{i}": "." for i in range(1, 9)}}),
    "a large sum": ("y = einsum nd,df->nf x w", {"x": (1024, 2), "w": (2, 512)},
                    {"x": ". t", "y": ". ."}),
}


def probes():
    """Return the plans of `PROBES` on two devices, by name: they tell a `Machine`'s
    constants apart.
    """
    return {name: Plan(program(text), shapes, {"t": 2}, where, [*shapes])
            for name, (text, shapes, where) in PROBES.items()}


def fit_machine(plans, seconds, cores):
    """Return a `Machine` of `cores` from measured plans, and the errors that remain.

    `plans`, `seconds`: by name; at least five, the `probes` among them. Errors as in
    `scale.fit`: 0.1 is ten percent too long.
    """
    found = least_squares([step_counts(plan, cores) for plan in plans.values()],
                          [seconds[name] for name in plans])
    return Machine(*found.constants, cores), dict(zip(plans, found.residuals))


def fastest(plans, machine, limit=float("inf"), **memory_of):
    """Return the name of the fastest plan among those that fit in `limit`.

    `plans`: by name. `limit`: bytes of a device. `memory_of`: as in `memory`. Raises
    `ValueError` for no plans, and, with the smallest plan, if none fits.
    """
    if not plans:
        raise ValueError("there are no plans: choose another number of devices, one "
                         "that divides the texts or the heads")
    needed = {name: memory(plan, **memory_of) for name, plan in plans.items()}
    fit_in = [name for name in plans if needed[name] <= limit]
    if not fit_in:
        least = min(needed, key=needed.get)
        raise ValueError(f"no plan fits in {limit:,} bytes per device: the smallest, "
                         f"{least}, needs {needed[least]:,}; use more devices or a "
                         "smaller batch")
    itemsize = memory_of.get("itemsize", 4)
    return min(fit_in, key=lambda name: machine.seconds(plans[name], itemsize))
