"""A compiled program on the devices of a mesh: the steps of a `compiler.Plan`, run."""


import numpy
from mxnet import autograd, np, npx

from ..data_parallel import traffic
from ..tensor_parallel import divided_layers as layers
from ..tensor_parallel.experts import all_to_all


def einsum(terms, out, *xs):
    """Return the sum of products of one or two arrays `xs`, as in `numpy.einsum`.

    `terms`: the letters of each array. `out`: those of the result.
    """
    if len(xs) == 1:
        left = [a for a in terms[0] if a in out]
        lost = tuple(i for i, a in enumerate(terms[0]) if a not in out)
        found = xs[0].sum(axis=lost) if lost else xs[0]
        return np.transpose(found, [left.index(a) for a in out])
    a, b = terms
    batch, summed = ([x for x in a if x in b and (x in out) is kept]
                     for kept in (True, False))
    rows, columns = [x for x in a if x not in b], [x for x in b if x not in a]
    size = {**dict(zip(a, xs[0].shape)), **dict(zip(b, xs[1].shape))}

    def matrix(x, term, *parts):
        x = np.transpose(x, [term.index(letter) for part in parts for letter in part])
        return x.reshape(*(int(numpy.prod([size[y] for y in part])) for part in parts))

    found = npx.batch_dot(matrix(xs[0], a, batch, rows, summed),
                          matrix(xs[1], b, batch, summed, columns))
    order = [*batch, *rows, *columns]
    found = found.reshape(tuple(size[x] for x in order))
    return np.transpose(found, [order.index(x) for x in out])


def run_on_device(op, first, *xs):
    """Return `op` of one device's parts `xs`. `first`: its table's first row."""
    if op.kind == "einsum":
        return einsum(op.terms, op.out, *xs)
    if op.kind == "embedding":
        rows = layers.embed(xs[0].reshape(-1), xs[1], first)
        return rows.reshape(*xs[0].shape, xs[1].shape[1])
    if op.kind in ("softmax", "norm"):
        operator = {"softmax": npx.softmax, "norm": npx.layer_norm}[op.kind]
        return operator(*xs, axis=-1)
    if op.kind == "gelu":
        return npx.leaky_relu(xs[0], act_type="gelu")
    if op.kind == "relu":
        return npx.relu(xs[0])
    if op.kind == "times":
        return xs[0] * op.number
    return sum(_spread(x, term, op.out) for x, term in zip(xs, op.terms))


def _spread(x, term, out):
    """Return `x` with an axis per letter of `out`, of length 1 where it has none."""
    x = np.transpose(x, [term.index(a) for a in out if a in term])
    sizes = iter(x.shape)
    return x.reshape(tuple(next(sizes) if a in term else 1 for a in out))


def back(op, first, xs, gradient, needed):
    """Return the gradients of an operation's inputs that are `needed`: a list."""
    if op.kind == "loss":
        return [xs[0] * np.expand_dims(gradient, -1), None]
    if op.kind != "einsum":
        own = [x.detach() for x in xs]
        for x, wanted in zip(own, needed):
            if wanted:
                x.attach_grad()
        with autograd.record():
            out = run_on_device(op, first, *own)
        out.backward(gradient)
        return [x.grad if wanted else None for x, wanted in zip(own, needed)]
    if len(xs) == 1:
        return [np.broadcast_to(_spread(gradient, op.out, op.terms[0]), xs[0].shape)]
    (a, b), out = op.terms, op.out
    return [einsum((out, b), a, gradient, xs[1]) if needed[0] else None,
            einsum((a, out), b, xs[0], gradient) if needed[1] else None]


def apply_move(move, group):
    """Move the arrays of a `group` along one mesh axis; return the new ones."""
    kind, _, start, stop = move
    k = len(group)
    if kind == "slice":
        return [_cut(x, k, stop)[i] for i, x in enumerate(group)]
    if kind == "all-to-all":
        found = all_to_all([_cut(x, k, stop) for x in group])
        return [np.concatenate(parts, axis=start) for parts in found]
    if kind == "allreduce":
        sums = layers.allreduce([x.reshape(-1) for x in group])
        return [s.reshape(x.shape) for s, x in zip(sums, group)]
    collective, axis = {"allgather": (layers.allgather, start),
                        "reduce-scatter": (layers.reduce_scatter, stop)}[kind]
    found = collective([np.swapaxes(x, 0, axis) for x in group])
    return [np.swapaxes(x, 0, axis) for x in found]


def _cut(x, k, axis):
    return np.split(x, k, axis=axis) if k > 1 else [x]


def _first(arrays):
    return next(x for x in arrays if x is not None)


class Compiled:
    """A `Plan` on the devices of a mesh.

        run = Compiled(plan, mesh)
        run.forward(arrays)          # NumPy arrays by name
        run.backward(1 / count)
        found = run.gradients()      # NumPy, joined; collecting them counts no bytes

    `mesh`: a `Mesh` with the axes and lengths of the plan; `ValueError` for any other.
    Developed in the chapter *Say where it lies*.
    """

    def __init__(self, plan, mesh):
        if plan.sizes != mesh.sizes:
            raise ValueError(f"the plan is for {plan.sizes}, not for {mesh.sizes}: "
                             "make a plan for this mesh")
        self.plan, self.mesh = plan, mesh
        self.at = [mesh.where(device) for device in mesh.devices]
        steps = [*plan.forward, *plan.backward]
        self.last = {v: n for n, step in enumerate(steps) for v in step.inputs}
        self.number = {id(step): n for n, step in enumerate(steps)}
        self.arrays, self.went_forward = {}, False
        self.kept = {plan.out, *plan.inputs.values(), *plan.gradients.values()}

    def place(self, value, whole):
        """Cut a NumPy array `whole` into the devices' parts, in the layout of `value`.

        Returns a list, with None for each device on which `value` does not lie. Raises
        `ValueError` for another shape than that of `value`.
        """
        if whole.shape != value.shape:
            raise ValueError(f"{value.name} has shape {whole.shape}, and the plan is "
                             f"for {value.shape}: give one of that shape")
        return self._each(value, lambda device, at: np.array(
            whole[self._part(value, at)], dtype=whole.dtype, ctx=device))

    def _each(self, value, make):
        """Return `make(device, coordinates)` where `value` lies; None elsewhere."""
        return [make(device, at)
                if all(at[along] == i for along, i in value.layout.at) else None
                for device, at in zip(self.mesh.devices, self.at)]

    def _part(self, value, at):
        """Return the slices of a whole array on the device at these coordinates."""
        local = value.layout.share(value.shape, self.plan.sizes)
        return tuple(slice(at[along] * n, at[along] * n + n) if along else slice(None)
                     for n, along in zip(local, value.layout.cut))

    def join(self, value):
        """Return the whole NumPy array of a `Value`, with sums that are owed. Waits."""
        found = self.arrays[value]
        whole, layout = numpy.zeros(value.shape, _first(found).dtype), value.layout
        repeated = {*self.plan.sizes} - {*layout.cut, *dict(layout.at)} - layout.owed
        for x, at in zip(found, self.at):
            if x is not None and not any(at[along] for along in repeated):
                whole[self._part(value, at)] += x.asnumpy()
        return whole

    def forward(self, given=None):
        """Run forward on the inputs `given`: NumPy arrays by name.

        With None: the inputs of the last call, which the devices still have. Raises
        `ValueError` for missing inputs, also in a first call with None, and for other
        shapes than the plan's. Never waits, except to copy the inputs.
        """
        inputs = self.plan.inputs
        if given is None and self.arrays:
            self.arrays = {v: self.arrays[v] for v in inputs.values()}
        elif missing := {*inputs} - {*(given or ())}:
            raise ValueError(f"these inputs are missing: {', '.join(sorted(missing))}")
        else:
            self.arrays = {v: self.place(v, given[name]) for name, v in inputs.items()}
        self._run(self.plan.forward)
        self.went_forward = True

    def backward(self, seed=1.0):
        """Run backward from the last array's gradient `seed`: a number or an array.

        Leaves the gradients where `gradients` finds them. A number saves a wait.
        Raises `RuntimeError` unless `forward` came directly before, and `ValueError`
        for a `seed` of another shape.
        """
        if not self.went_forward:
            raise RuntimeError("call forward first: backward frees what forward keeps")
        value, dtype = self.plan.seed, _first(self.arrays[self.plan.out]).dtype
        if numpy.ndim(seed):
            self.arrays[value] = self.place(value, numpy.asarray(seed, dtype))
        else:  # made on the devices: a copy from NumPy would wait for forward
            local = value.layout.share(value.shape, self.plan.sizes)
            self.arrays[value] = self._each(value, lambda device, at: np.full(
                local, seed, dtype=dtype, ctx=device))
        self.went_forward = False
        self._run(self.plan.backward)

    def gradients(self):
        """Return the gradients of all weights, joined: NumPy arrays by name. Waits.

        Raises `RuntimeError` unless `backward` came after the last `forward`.
        """
        if not self.arrays.keys() >= {*self.plan.gradients.values()}:
            raise RuntimeError("there are no gradients yet: call backward first")
        return {name: self.join(v) for name, v in self.plan.gradients.items()}

    def _run(self, steps):
        for step in steps:
            getattr(self, f"_{step.kind}")(step)
            for v in step.inputs:
                if self.last[v] == self.number[id(step)] and v not in self.kept:
                    self.arrays.pop(v, None)

    def _move(self, step):
        (value,), (moved,) = step.inputs, step.outputs
        kind, along, start, stop = step.move
        arrays = self.arrays[value]
        if kind == "keep":
            arrays = [x if at[along] == stop else None
                      for x, at in zip(arrays, self.at)]
        elif kind == "send":
            arrays = self._send(along, start, stop, arrays)
        else:
            arrays = self._groups(
                along, lambda group: apply_move(step.move, group), arrays)
        self.arrays[moved] = arrays

    def _send(self, along, start, stop, arrays):
        """Send from each device at `start` to its partner at `stop`."""
        found, devices = [None] * len(arrays), self.mesh.devices
        for group in self.mesh.groups(along):
            x, to = arrays[devices.index(group[start])], group[stop]
            if x is not None:
                found[devices.index(to)] = traffic.send(x, to)
        return found

    def _groups(self, along, function, *columns):
        """Apply `function` to each group along a mesh axis; return a list by device."""
        devices, found = self.mesh.devices, [None] * len(self.at)
        groups = [[devices.index(d) for d in g] for g in self.mesh.groups(along)]
        groups = [own for own in groups if columns[0][own[0]] is not None]
        done = traffic.at_once(
            lambda own: function(*([xs[i] for i in own] for xs in columns)), groups)
        for own, results in zip(groups, done):
            for i, x in zip(own, results):
                found[i] = x
        return found

    def _sum(self, step):
        columns = zip(*(self.arrays[v] for v in step.inputs))
        self.arrays[step.outputs[0]] = [
            None if own[0] is None else sum(own[1:], own[0]) for own in columns]

    def _firsts(self, step):
        """Return the first row of each device's part of a table that is cut."""
        op = step.op
        letter = {"embedding": op.terms[-1][:1], "loss": op.terms[0][-1:]}.get(op.kind)
        along = step.cut.get(letter)
        table = step.inputs[1 if op.kind == "embedding" else 0]
        if along is None:
            return [0] * len(self.at)
        axis = op.terms[-1].index(letter) if op.kind == "embedding" else -1
        rows = table.shape[axis] // self.plan.sizes[along]
        return [at[along] * rows for at in self.at]

    def _op(self, step):
        given, firsts = [self.arrays[v] for v in step.inputs], self._firsts(step)
        if step.op.kind == "loss":
            return self._loss(step, *given, firsts)
        self.arrays[step.outputs[0]] = [
            None if xs[0] is None else run_on_device(step.op, first, *xs)
            for first, xs in zip(firsts, zip(*given))]

    def _loss(self, step, scores, targets, firsts):
        along = step.cut.get(step.op.terms[0][-1])

        def lost(scores, targets, firsts):
            flat = [z.reshape(-1, z.shape[-1]) for z in scores]
            found = layers.cross_entropy(
                flat, [t.reshape(-1) for t in targets], firsts, count=1)
            return [(loss.reshape(t.shape), dz.reshape(z.shape))
                    for loss, dz, t, z in zip(*found, targets, scores)]

        if along:
            found = self._groups(along, lost, scores, targets, firsts)
        else:
            found = [None if own[0] is None else lost(*([x] for x in own))[0]
                     for own in zip(scores, targets, firsts)]
        for v, column in zip(step.outputs, zip(*(x or (None, None) for x in found))):
            self.arrays[v] = [*column]

    def _back(self, step):
        *given, gradient = [self.arrays[v] for v in step.inputs]
        needed = [v is not None for v in step.outputs]
        rows = [back(step.op, first, xs, g, needed) if g is not None
                else [None] * len(needed)
                for first, xs, g in zip(self._firsts(step), zip(*given), gradient)]
        for v, column in zip(step.outputs, zip(*rows)):
            if v is not None:
                self.arrays[v] = [*column]
