"""A sharding compiler: from the layouts of some arrays to all messages, in order.

    u = einsum btd,df->btf   h up        one line per operation: its name, its kind, the
    a = gelu   btf->btf      u           letters of its axes, and its inputs
    y = einsum btf,fd->btd   a down

An operation is a loop over its letters, and a mesh axis can cut one of them. Then every
array with that letter must be cut there, and an array without it must be whole. If the
letter is summed, each device has a summand of the result: a sum is *owed*. So a choice
of letters says where all inputs of an operation must lie, and where its output will.

`Plan` goes through the operations, chooses letters, and inserts moves; then it goes
back, by the dual of each move. It computes nothing: `compiled` runs its steps.
"""

from collections import Counter, namedtuple
from contextlib import suppress
from itertools import product
from math import prod

from ..checks import known_name
from .layout import Layout, dual, elements, moves, parse, possible, price

#: A line of a program. `terms`: the letters of each input. `number`: after a colon.
Op = namedtuple("Op", "name kind terms out inputs number")
#: A step of the devices. `kind`: op, back, move or sum. `inputs`, `outputs`: `Value`s.
#: `op`, `cut`: an operation, and the mesh axis of its letters. `move`: as in `layout`.
Step = namedtuple("Step", "kind inputs outputs op cut move", defaults=(None,) * 3)
#: The number of inputs, and whether the last letter must be whole.
OPS = {"einsum": ((1, 2), False), "embedding": ((2,), False), "loss": ((2,), False),
       "add": ((2,), False), "relu": ((1,), False), "gelu": ((1,), False),
       "times": ((1,), False), "softmax": ((1,), True), "norm": ((3,), True)}
#: Owed sums go through these: a summand per device gives a summand per device.
LINEAR = ("einsum", "add", "times")


class Value:
    """An array on all devices: its `name` in the program, whole `shape`, `layout`."""

    def __init__(self, name, shape, layout):
        self.name, self.shape, self.layout = name, shape, layout


def program(text):
    """Parse `text`, which has one operation per line: a list of `Op`.

    Kinds: einsum, embedding (tokens, table), loss (scores, targets), add, times:NUMBER,
    relu, gelu, softmax and norm (x, gain, shift) along the last axis. The letters of
    einsum and add are free, those of the others follow from the first input and the
    table. Raises `ValueError`, with the line's name, for anything else.
    """
    ops = []
    for line in filter(str.strip, text.splitlines()):
        words = line.split()
        if len(words) < 5 or words[1] != "=":
            raise ValueError(f"{line.strip()!r} is not an operation: write NAME = KIND "
                             "TERMS INPUTS")
        name, _, kind, spec, *inputs = words
        kind, _, number = kind.partition(":")
        known_name("operation", kind, OPS, f" of {name}")
        terms, _, out = spec.partition("->")
        number = _number(name, kind, number)
        ops.append(Op(name, kind, terms.split(","), out, inputs, number))
        _check_letters(ops[-1], line)
    return ops


def _number(name, kind, text):
    """Return the number after the colon of `times`; 0 for a kind without one."""
    with suppress(ValueError):
        if kind == "times":
            return float(text)
        if not text:
            return 0.0
    raise ValueError(f"{name} = {kind} with the number {text!r}: write times:NUMBER, "
                     "and no number after another kind")


def _check_letters(op, line):
    given, out = {*"".join(op.terms)}, {*op.out}
    lonely = [a for a in given - out if sum(a in term for term in op.terms) < 2]
    product = op.kind == "einsum" and len(op.terms) > 1
    wrong = (
        len(op.terms) != len(op.inputs) or len(op.inputs) not in OPS[op.kind][0]
        or out - given or (product and lonely) or (given - out and op.kind == "add")
        or any(len({*term}) < len(term) for term in (*op.terms, op.out))
    )
    if wrong:
        raise ValueError(
            f"{op.name}: {line.strip()!r} cannot be cut as {op.kind}: give a term "
            "for each input, each letter once in a term, and in a product each "
            "letter in the output or in both inputs")
    right = _spec(op.kind, op.terms[0], op.terms[-1])
    if right and right != f"{','.join(op.terms)}->{op.out}":
        raise ValueError(f"{op.name}: {line.strip()!r} cannot be cut as {op.kind}: its "
                         f"letters must be {right}")


def _spec(kind, x, last):
    """Return the letters of an operation on `x`; None where they are free."""
    return {"einsum": None, "add": None, "loss": f"{x},{x[:-1]}->{x[:-1]}",
            "embedding": f"{x},{last[:1]}{last[-1:]}->{x}{last[-1:]}",
            "norm": f"{x},{x[-1:]},{x[-1:]}->{x}"}.get(kind, f"{x}->{x}")


class Plan:
    """A program's steps on a mesh, forward and backward, and what they send.

        plan = Plan(program(text), shapes, {"data": 2, "tensor": 2}, where, ["up"])
        plan.counts()    # Counter({("allreduce", "tensor"): 1})

    `ops`: from `program`. `shapes`: of the inputs, by name. `sizes`: the mesh's lengths
    by axis. `where`: layouts of some arrays by name, as in `layout`; an input without
    one is whole, another array lies where it is cheapest to compute. Two layouts, "data
    . -> . .", are those at rest and in use. `weights`: the inputs whose gradients are
    wanted. `again`: backward gathers weights once more instead of keeping them.

    `forward`, `backward`: lists of `Step`; `values`: each array's `Value`s by name.
    `inputs`, `gradients`: `Value`s by name; `out`, `seed`: of the last line, and of its
    gradient. Raises `ValueError`, with the array's name, where no moves lead to a
    layout, for unknown arrays, a line with the name of an input or of another line,
    shapes that do not fit the letters, an input that owes a sum, and a weight on which
    the last line does not depend.
    Source: Xu et al., "GSPMD" (2021). Developed in the chapter *Say where it lies*.
    """

    def __init__(self, ops, shapes, sizes, where=None, weights=(), again=False):
        self.sizes, self.where, self.weights = dict(sizes), dict(where or {}), weights
        self.again, self.steps = again, []
        self.values, self.inputs, self.needed = {}, {}, {*weights}
        self.integers = {op.inputs[op.kind == "loss"] for op in ops
                         if op.kind in ("embedding", "loss")}
        known = [*shapes, *(op.name for op in ops)]
        twice = [name for name, count in Counter(known).items() if count > 1]
        if twice:
            raise ValueError(f"{twice[0]}: two arrays have this name: rename one")
        for name in self.where:
            known_name("array", name, known)
        for name in weights:
            known_name("input", name, shapes)
        for name, shape in shapes.items():
            self._input(name, tuple(shape))
        for op in ops:
            self._forward(op)
        self.forward, self.steps = self.steps, []
        self.out = self.values[ops[-1].name][-1]
        self._backward()
        self.backward = self.steps

    # ---- Forward ----

    def _input(self, name, shape):
        rest, use = self._wanted(name, shape)
        rest = rest or Layout((None,) * len(shape))
        if rest.owed:
            raise ValueError(f"{name} is an input and cannot owe a sum, as in {rest}")
        self.inputs[name] = Value(name, shape, rest)
        self.values[name] = [self.inputs[name]]
        self._pin(name, use)

    def _wanted(self, name, shape):
        """Return the layouts of `name` at rest and in use, or None."""
        texts = self.where.get(name, "").split("->")
        found = [parse(text, shape, self.sizes, name) if text.strip() else None
                 for text in texts]
        return (found[0], found[-1])

    def _pin(self, name, layout):
        """Give `name` this `layout` from here on, if there is one."""
        if layout:
            if not any(possible(v.layout, layout) for v in self.values[name]):
                raise ValueError(f"{name}: {layout} cannot be made from "
                                 f"{self.values[name][0].layout}")
            self.values[name] = [self.fetch(name, layout)]

    def fetch(self, name, layout):
        """Return the array `name` as a `Value` of this `layout`; add needed moves."""
        near = min(self.values[name], key=lambda v: self._price(v, layout))
        for move in moves(near.layout, layout):
            near = self._move(near, move)
            self.values[name].append(near)
        return near

    def _price(self, value, layout):
        if not possible(value.layout, layout):
            return float("inf")
        return price(value.layout, layout, value.shape, self.sizes)

    def _move(self, value, move):
        moved = Value(value.name, value.shape, value.layout.after(move))
        self.steps.append(Step("move", [value], [moved], move=move))
        return moved

    def _forward(self, op):
        lengths = self._lengths(op)
        shape = tuple(lengths[a] for a in op.out)
        rest, use = self._wanted(op.name, shape)
        cut, layouts, natural = self._choose(op, lengths, shape, rest)
        given = [self.fetch(x, lies) for x, lies in zip(op.inputs, layouts)]
        made = [Value(op.name, shape, natural)]
        if op.kind == "loss":  # its gradient is known at once
            made.append(Value(op.name, given[0].shape, layouts[0]))
        self.steps.append(Step("op", given, made, op, cut))
        self.values[op.name] = made[:1]
        if self.needed & {*op.inputs}:
            self.needed.add(op.name)
        self._pin(op.name, rest)
        self._pin(op.name, use)

    def _lengths(self, op):
        lengths = {}
        for name, term in zip(op.inputs, op.terms):
            known_name("array", name, self.values, f" in {op.name}")
            shape = self.values[name][0].shape
            if len(shape) != len(term) or any(
                    lengths.setdefault(a, n) != n for a, n in zip(term, shape)):
                raise ValueError(f"{op.name} = {op.kind}: {name} of shape {shape} does "
                                 f"not fit the letters {term!r}")
        return lengths

    def _choose(self, op, lengths, shape, wanted):
        """Return the letters to cut, the layouts of the inputs, and that of the output.

        Prefers the most divided work, then the fewest elements sent; a sum that is
        owed counts as if it were done at once.
        """
        best, places = None, self._places(op)
        options = [[None] if along in places else self._options(op, along, wanted)
                   for along in self.sizes]
        for picks in product(*options):
            chosen = dict(zip(self.sizes, picks))
            cut = {a: along for along, a in chosen.items() if a not in (None, "+")}
            kept = {along for along, a in chosen.items() if a == "+"}
            twice = len(cut) + len(kept) < sum(a is not None for a in picks)
            if twice or any(lengths[a] % self.sizes[along] for a, along in cut.items()):
                continue
            layouts, out = self._layouts(op, cut, kept, frozenset(places.items()))
            if wanted and not possible(out, wanted):
                continue
            sent = self._elements_in(op, layouts) + price(
                out, wanted or Layout(out.cut, at=out.at), shape, self.sizes)
            key = -prod(self.sizes[along] for along in cut.values()), sent
            if sent < float("inf") and (best is None or key < best[0]):
                best = key, (cut, layouts, out)
        if best is None:
            raise ValueError(f"{op.name} = {op.kind}: owes no sum, or cannot lie, as "
                             f"{wanted} asks")
        return best[1]

    def _places(self, op):
        """Return where `op` runs: in a pipeline, at the last place of an input."""
        places = {}
        for name in op.inputs:
            for along, i in self.values[name][0].layout.at:
                places[along] = max(i, places.get(along, 0))
        return places

    def _elements_in(self, op, layouts):
        """Return the elements a device sends to bring the inputs to these `layouts`."""
        return sum(min(self._price(v, lies) for v in self.values[name])
                   for name, lies in zip(op.inputs, layouts))

    def _options(self, op, along, wanted):
        """Return the letters `along` may cut; None; and "+", to let a sum stay owed."""
        held = [(term, v.layout) for name, term in zip(op.inputs, op.terms)
                for v in self.values[name]] + ([(op.out, wanted)] if wanted else [])
        letters = {term[lies.place(along)] for term, lies in held if along in lies.cut}
        if OPS[op.kind][1]:
            letters -= {op.out[-1]}
        owing = sum(along in self.values[name][0].layout.owed for name in op.inputs)
        passes = owing == (len(op.inputs) if op.kind == "add" else 1)
        stays = ["+"] if op.kind in LINEAR and passes else []
        return [*sorted(letters), *stays, None]

    def _layouts(self, op, cut, kept, at):
        layouts = [
            Layout(tuple(map(cut.get, term)), frozenset(
                kept & self.values[name][0].layout.owed), at)
            for name, term in zip(op.inputs, op.terms)
        ]
        summed = {along for a, along in cut.items() if a not in op.out}
        owed = kept | (summed if op.kind != "loss" else set())
        return layouts, Layout(tuple(map(cut.get, op.out)), frozenset(owed), at)

    # ---- Backward ----

    def _backward(self):
        lies = Layout(self.out.layout.cut, at=self.out.layout.at)
        self.seed = Value(self.out.name, self.out.shape, lies)
        self.found = {self.out: [self.seed]}  # gradients, still to be summed
        for step in reversed(self.forward):
            (self._through if step.kind == "op" else self._against)(step)
        self.gradients = {name: self._settle(self.inputs[name])
                          for name in self.weights}
        for name, found in self.gradients.items():
            if found is None:
                raise ValueError(f"{self.out.name} does not depend on {name}: leave "
                                 "it out of the weights")

    def _settle(self, value, keep=frozenset()):
        """Return the sum of `value`'s gradients, done if not in `keep`; or None."""
        by_debt = {}
        for found in self.found.pop(value, []):
            by_debt.setdefault(found.layout.owed, []).append(found)
        if not by_debt:
            return None
        common = frozenset.intersection(*by_debt) & keep
        sums = []
        for owed, found in by_debt.items():
            total = self._sum(found)
            for along in sorted(owed - common):
                total = self._move(total, ("allreduce", along, None, None))
            sums.append(total)
        return self._sum(sums)

    def _sum(self, values):
        if len(values) == 1:
            return values[0]
        first = values[0]
        total = Value(first.name, first.shape, first.layout)
        self.steps.append(Step("sum", values, [total]))
        return total

    def _through(self, step):
        """Go back through an operation: gradients of the inputs that need one.

        Where its letters are cut, an input without the letter is used differently on
        each device; so its gradient is a sum that is owed.
        """
        op, outs = step.op, []
        gradient = self._settle(step.outputs[0]) if op.name in self.needed else None
        if gradient is None:
            return
        kept = step.outputs[0].layout.owed - {*step.cut.values()}
        for value, term in zip(step.inputs, op.terms):
            others = {along for a, along in step.cut.items() if a not in term}
            owed = others | (kept - value.layout.owed)
            lies = Layout(value.layout.cut, frozenset(owed), value.layout.at)
            outs.append(Value(value.name, value.shape, lies)
                        if value.name in self.needed else None)
        given = [self._held(value) for value in step.inputs]
        if op.kind == "loss":
            given[0] = step.outputs[1]
        self.steps.append(Step("back", [*given, gradient], outs, op, step.cut))
        for value, found in zip(step.inputs, outs):
            if found:
                self.found.setdefault(value, []).append(found)

    def _held(self, value):
        """Return `value` as forward left it, or gathered again."""
        rest = self.inputs.get(value.name)
        if self.again and value.name in self.weights and value is not rest:
            for move in moves(rest.layout, value.layout):
                rest = self._move(rest, move)
            return rest
        return value

    def _against(self, step):
        """Go back through a move: the dual of its kind."""
        value = step.outputs[0]
        gradient = (self._settle(value, keep=frozenset(self.sizes))
                    if value.name in self.needed else None)
        if gradient is None:
            return
        try:
            back = dual(step.move, gradient.layout.owed)
        except ValueError as error:
            raise ValueError(f"{value.name}: {error}") from None
        for move in back:
            gradient = self._move(gradient, move)
        self.found.setdefault(step.inputs[0], []).append(gradient)

    # ---- What is sent ----

    def messages(self, *steps):
        """Return rows (kind, mesh axis, array, elements that a device sends, which
        devices).

        `steps`: default all.

        The devices are given by `Layout.at`, which is empty for all.
        """
        rows = []
        for step in steps or [*self.forward, *self.backward]:
            value = step.inputs[0] if step.inputs else None
            k = 1
            if step.kind == "move":
                kind, along = step.move[:2]
                k = self.sizes[along]
                local = prod(value.layout.share(value.shape, self.sizes))
            elif step.kind == "op" and step.op.kind == "loss":
                along = step.cut.get(step.op.terms[0][-1])
                kind, k = "allgather", self.sizes.get(along, 1)
                out = step.outputs[0]
                local = 2 * prod(out.layout.share(out.shape, self.sizes))
            if k > 1 and kind not in ("slice", "keep"):
                n = elements(kind, k, local)
                rows.append((kind, along, value.name, n, value.layout.at))
        return rows

    def counts(self):
        """Return the number of collectives: a `Counter` by (kind, mesh axis)."""
        return Counter(row[:2] for row in self.messages())

    def sent(self, itemsize=4):
        """Return the bytes per step of the busiest sender, by mesh axis: a dict."""
        return {along: max(of) for along, of in self.by_device(itemsize).items()}

    def by_device(self, itemsize=4):
        """Return the bytes that each device sends in a step: {mesh axis: a list}.

        `itemsize`: bytes of a number, default 4. Tokens and targets always have 4. An
        allreduce counts as if the devices of its group divided its elements evenly.
        """
        places = [dict(zip(self.sizes, at))
                  for at in product(*map(range, self.sizes.values()))]
        found = {along: [0] * len(places) for along in self.sizes}
        for _, along, name, n, where in self.messages():
            for i, at in enumerate(places):
                if all(at[axis] == place for axis, place in where):
                    found[along][i] += n * (4 if name in self.integers else itemsize)
        return found
