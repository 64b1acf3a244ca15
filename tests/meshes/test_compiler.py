"""The sharding compiler: against one device, and against the ways written by hand."""

import d2l_ext  # noqa: F401, I001

from collections import Counter
from math import prod

import numpy
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from mxnet import np, npx

from d2l_ext.data_parallel import traffic
from d2l_ext.devices import try_all_devices
from d2l_ext.memory import shards
from d2l_ext.meshes import decoder as by_hand
from d2l_ext.meshes import layout, programs
from d2l_ext.meshes.compiled import Compiled, einsum
from d2l_ext.meshes.compiler import Plan, program
from d2l_ext.meshes.layout import Layout
from d2l_ext.meshes.mesh import Mesh
from d2l_ext.tensor_parallel import divided_layers, experts, transformer
from d2l_ext.tensor_parallel.divided_layers import SEQUENCE, TENSOR

npx.set_np()

MLP = """
u = einsum nd,df->nf x up
a = gelu nf->nf u
y = einsum nf,fd->nd a down
"""
SHAPES = {"x": (8, 4), "up": (4, 16), "down": (16, 4)}
WEIGHTS = ["up", "down"]


def planned(where, sizes, text=MLP, shapes=SHAPES, weights=WEIGHTS, **options):
    return Plan(program(text), shapes, sizes, where, weights, **options)


def numbers(shapes, seed=0):
    rng = numpy.random.RandomState(seed)
    return {name: rng.randn(*shape) for name, shape in shapes.items()}


def on(plan, arrays, seed=1.0):
    """The result, the gradients, and the bytes by mesh axis of each device."""
    mesh = Mesh(try_all_devices(prod(plan.sizes.values())), **plan.sizes)
    run = Compiled(plan, mesh)
    with traffic.count(mesh.devices) as moved:
        run.forward(arrays)
        run.backward(seed)
    return run.join(plan.out), run.gradients(), mesh.by_axis(moved)


def equal(found, right):
    assert found.keys() == right.keys()
    for name, x in right.items():
        numpy.testing.assert_allclose(found[name], x, atol=1e-12, err_msg=name)


# ---- Layouts and moves ----


@pytest.mark.parametrize("text, message", [
    ("data", "x has 2 axes, and 'data' names 1"),
    ("date .", "x: 'date .' must name axes of the mesh, data, tensor"),
    ("data data", "none of them twice"),
    (". . @data=2", "x: '. . @data=2' must give data a coordinate from 0 to 1, not 2"),
    (". . @data=0 @data=1", "none of them twice"),
    (". . +", "x: '. . \\+' must name axes of the mesh"),
    (". . @", "x: '. . @' must name axes of the mesh"),
    (". tensor", "x: axis 1 has 3 elements, which tensor's 2 devices cannot share"),
])
def test_a_layout_that_cannot_be_is_refused_by_the_arrays_name(text, message):
    with pytest.raises(ValueError, match=message):
        layout.parse(text, (4, 3), {"data": 2, "tensor": 2}, "x")


@pytest.mark.parametrize("start, stop, kinds", [
    ("t .", ". .", ["allgather"]),
    ("t .", ". t", ["all-to-all"]),
    (". .", ". t", ["slice"]),
    (". . +t", ". .", ["allreduce"]),
    (". . +t", "t .", ["reduce-scatter"]),
    (". .", ". . @t=1", ["keep"]),
    (". . @t=0", ". . @t=1", ["send"]),
    (". . +d @t=0", ". . @t=1", ["allreduce", "send"]),
    ("d . +t", ". t", ["reduce-scatter", "allgather"]),
    ("d t", "t d", ["allgather", "all-to-all", "slice"]),
])
def test_each_pair_of_layouts_has_its_moves(start, stop, kinds):
    sizes = {"d": 2, "t": 2}
    start, stop = (layout.parse(text, (4, 4), sizes, "x") for text in (start, stop))
    found = layout.moves(start, stop)
    assert sorted(move[0] for move in found) == sorted(kinds)
    for move in found:
        start = start.after(move)
    assert start == stop


def test_a_whole_array_owes_nothing_and_cannot_begin_to():
    with pytest.raises(ValueError, match=". \\+t cannot be made from .,"):
        layout.moves(Layout((None,)), Layout((None,), frozenset("t")))


@pytest.mark.parametrize("spec", [
    "ij,jk->ik", "bij,bjk->kbi", "ij,ij->ij", "i,j->ji", "bthk,bshk->bhts", "ijk->ki",
    "ij,ij->", "ij->",
])
def test_einsum_is_numpys(spec):
    terms, _, out = spec.partition("->")
    size = dict(zip("ijkbths", (2, 3, 4, 5, 6, 7, 8)))
    rng = numpy.random.RandomState(0)
    xs = [rng.randn(*map(size.get, term)) for term in terms.split(",")]
    found = einsum(terms.split(","), out, *(np.array(x, dtype="float64") for x in xs))
    numpy.testing.assert_allclose(found.asnumpy(), numpy.einsum(spec, *xs), atol=1e-12)


# ---- What the compiler inserts ----


@pytest.mark.parametrize("where, kinds", [
    ({"x": "t ."}, {"allreduce": 2}),
    ({"up": ". t", "down": "t .", "y": ". ."}, {"allreduce": 1}),
    ({"x": "t .", "up": "t . -> . .", "down": "t . -> . ."},
     {"allgather": 2, "reduce-scatter": 2}),
    ({"x": "t . -> . .", "up": ". t", "down": "t .", "y": "t ."},
     {"allgather": 2, "reduce-scatter": 1}),
])
def test_the_collectives_of_an_mlp_follow_from_its_layouts(where, kinds):
    plan = planned(where, {"t": 2})
    assert Counter(kind for kind, *_ in plan.messages()) == kinds
    arrays = numbers(SHAPES)
    right = on(planned({}, {"t": 1}), arrays)
    out, gradients, sent = on(plan, arrays)
    numpy.testing.assert_allclose(out, right[0], atol=1e-12)
    equal(gradients, right[1])
    assert sent == {"t": [plan.sent(8)["t"]] * 2}


def test_a_sum_stays_owed_through_what_is_linear_and_no_further():
    text = "y = einsum nf,fd->nd x W\nz = times:3 nd->nd y\nr = relu nd->nd z"
    shapes = {"x": (4, 4), "W": (4, 4)}
    plan = planned({"x": ". t", "W": "t ."}, {"t": 2}, text, shapes, ["W"])
    assert str(plan.values["y"][0].layout) == ". . +t"
    assert str(plan.values["z"][0].layout) in (". . +t", ". .")
    assert plan.values["r"][0].layout.owed == frozenset()
    assert plan.counts() == {("allreduce", "t"): 1}


def test_a_scalar_product_on_two_devices_and_its_gradients():
    text, shapes = "s = einsum nd,nd-> x y\nt = add ,-> s s", {"x": (2, 4), "y": (2, 4)}
    arrays = numbers(shapes)
    total, found, _ = on(planned({"x": ". t"}, {"t": 2}, text, shapes, ["x", "y"]),
                         arrays)
    assert total == pytest.approx(2 * (arrays["x"] * arrays["y"]).sum())
    equal(found, {"x": 2 * arrays["y"], "y": 2 * arrays["x"]})


def test_the_gradient_of_a_factor_beside_a_sum_that_is_owed_is_owed_as_well():
    text = "y = einsum nd,df->nf x W\nz = einsum nf,fe->ne y V"
    shapes = {"x": (4, 4), "W": (4, 8), "V": (8, 2)}
    where = {"x": ". t", "W": "t ."}
    plan = planned(where, {"t": 2}, text, shapes, ["W", "V"])
    assert str(plan.out.layout) == ". . +t"
    assert plan.counts() == {("allreduce", "t"): 1}  # of V's gradient
    one = planned({}, {"t": 1}, text, shapes, ["W", "V"])
    equal(*(on(p, numbers(shapes))[1] for p in (plan, one)))


# ---- Refusals ----


@pytest.mark.parametrize("text, where, message", [
    ("y = x", {}, "'y = x' is not an operation"),
    ("y = conv nd->nd x", {}, "unknown operation 'conv' of y"),
    ("y = einsum nd,kf->nf x up", {}, "y: .* cannot be cut as einsum"),
    ("y = einsum nn->n x", {}, "y: .* each letter once"),
    ("y = relu nd->n x", {}, "y: .* cannot be cut as relu"),
    ("y is relu nd->nd x", {}, "'y is relu nd->nd x' is not an operation"),
    *((f"y = {kind} nd->dn x", {}, f"y: .* as {kind.split(':')[0]}: .* must be nd->nd")
      for kind in ("relu", "gelu", "times:2", "softmax")),
    ("y = norm nd,n,n->nd x up down", {}, "y: .* as norm: .* must be nd,d,d->nd"),
    ("y = loss nd,d->d x up", {}, "y: .* as loss: .* must be nd,n->n"),
    ("y = embedding n,vd->dn x up", {}, "y: .* as embedding: .* must be n,vd->nd"),
    ("y = times nd->nd x", {}, "y = times with the number '': write times:NUMBER"),
    ("y = times:a nd->nd x", {}, "y = times with the number 'a': write times:NUMBER"),
    ("y = relu:3 nd->nd x", {}, "y = relu .* and no number after another kind"),
    ("y = relu ndk->ndk x", {}, "y = relu: x of shape"),
    ("y = relu nd->nd z", {}, "unknown array 'z' in y"),
    ("y = softmax nd->nd x", {"y": ". . +t"}, "y = softmax: owes no sum"),
    ("y = relu nd->nd x", {"x": ". . +t"}, "x is an input and cannot owe a sum"),
    ("y = relu nd->nd x", {"z": ". ."}, "unknown array 'z'"),
    ("y = relu nd->nd x", {}, "y does not depend on up"),
    ("up = relu dk->dk up", {}, "up: two arrays have this name: rename one"),
])
def test_what_it_cannot_do_it_refuses_by_name(text, where, message):
    with pytest.raises(ValueError, match=message):
        planned(where, {"t": 2}, text)


def test_only_an_input_is_a_weight():
    with pytest.raises(ValueError, match="unknown input 'y': choose from"):
        planned({}, {"t": 2}, "y = relu nd->nd x", weights=["y"])


def test_a_mesh_of_other_axes_is_refused():
    with pytest.raises(ValueError, match="the plan is for .*'t': 2.* not for .*'d': 2"):
        Compiled(planned({}, {"t": 2}), Mesh(try_all_devices(2), d=2))


def test_inputs_must_have_the_shapes_of_the_plan_and_forward_comes_before_backward():
    run = Compiled(planned({}, {"t": 1}), Mesh(try_all_devices(1), t=1))
    with pytest.raises(ValueError, match="these inputs are missing: down, up, x"):
        run.forward()
    arrays = numbers(SHAPES)
    with pytest.raises(ValueError, match=r"x has shape \(4, 8\), .* for \(8, 4\)"):
        run.forward({**arrays, "x": arrays["x"].T})
    run.forward(arrays)
    with pytest.raises(RuntimeError, match="no gradients yet: call backward first"):
        run.gradients()
    with pytest.raises(ValueError, match=r"has shape \(3, 3\), and the plan is for"):
        run.backward(numpy.ones((3, 3)))
    run.backward()
    first = run.gradients()
    with pytest.raises(RuntimeError, match="call forward first"):
        run.backward()
    run.forward()
    run.backward()
    equal(run.gradients(), first)


# ---- Random programs ----

SIZES = dict(zip("btdfhv", (4, 8, 4, 8, 6, 4)))
MESHES = [{"p": 2}, {"p": 4}, {"p": 2, "q": 2}, {"p": 2, "q": 4}]
SEEN = Counter()


@st.composite
def programs_and_layouts(draw):
    """A random program, the letters of its arrays, a mesh, and some layouts."""
    pick = lambda things: draw(st.sampled_from(list(things)))
    some = lambda letters, least: "".join(draw(st.lists(
        st.sampled_from(letters), unique=True, min_size=least, max_size=3)))
    arrays, lines, weights = {"x": "btd"}, [], []

    def weight(letters):
        weights.append(f"w{len(weights)}")
        arrays[weights[-1]] = letters
        return weights[-1]

    made = ["x"]
    if draw(st.booleans()):
        arrays["ids"], table = "bt", weight("vd")
        lines, made = [f"e = embedding bt,vd->btd ids {table}"], ["x", "e"]
        arrays["e"] = "btd"
    for n in range(draw(st.integers(1, 4))):
        name, x = f"y{n}", pick(made)
        a, kind = arrays[x], pick(("product", "product", "two", "sum", "add", "relu",
                                   "gelu", "times:0.5", "softmax", "norm"))
        twins = [y for y in made if {*arrays[y]} == {*a}]
        if kind == "product":
            b = some(a + "".join({*SIZES} - {*a}), 1)
            if not {*b} & {*a}:
                b = a[0] + b[:2]
            y = weight(b)
        elif kind == "two":
            y = pick(made)
            b = arrays[y]
        if kind in ("product", "two"):
            both = {*a} & {*b}
            gone = {*some(sorted(both), 0)} if both else set()
            kept = [c for c in dict.fromkeys(a + b) if c not in gone]
            if len(kept) > 4 or not kept:
                continue
            out = "".join(draw(st.permutations(kept)))
            lines.append(f"{name} = einsum {a},{b}->{out} {x} {y}")
        elif kind == "sum":
            out = some(a, 1)
            lines.append(f"{name} = einsum {a}->{out} {x}")
        elif kind == "add":
            y, out = pick(twins), a
            lines.append(f"{name} = add {a},{arrays[y]}->{a} {x} {y}")
        elif kind == "norm":
            out, c = a, a[-1]
            lines.append(f"{name} = norm {a},{c},{c}->{a} {x} {weight(c)} {weight(c)}")
        else:
            out = a
            lines.append(f"{name} = {kind} {a}->{a} {x}")
        arrays[name] = out
        made.append(name)
    assume(lines)
    last = made[-1]
    if arrays[last][-1] == "v" and len(arrays[last]) > 1:
        arrays["labels"] = arrays[last][:-1]
        lines.append(f"l = loss {arrays[last]},{arrays['labels']}->{arrays['labels']} "
                     f"{last} labels")
    sizes, where = pick(MESHES), {}
    for name, letters in arrays.items():
        if draw(st.integers(0, 2)) == 0:
            where[name] = " -> ".join(
                _layout(draw, letters, sizes) for _ in range(draw(st.integers(1, 2))))
    return "\n".join(lines), arrays, weights, sizes, where


def _layout(draw, letters, sizes):
    words = ["."] * len(letters)
    for along in sizes:
        place = draw(st.integers(-1, len(letters) - 1))
        if place >= 0 and words[place] == ".":
            words[place] = along
        elif draw(st.integers(0, 19)) == 0:
            words.append(f"+{along}")
    return " ".join(words)


def inputs_of(text, arrays, seed=0):
    rng = numpy.random.RandomState(seed)
    made = {line.split()[0] for line in text.splitlines()}
    found = {}
    for name, letters in arrays.items():
        shape = [SIZES[a] for a in letters]
        if name in ("ids", "labels"):
            found[name] = rng.randint(4, size=shape).astype("int32")
        elif name not in made:
            found[name] = rng.randn(*shape)
    return found


@settings(max_examples=250)
@given(programs_and_layouts())
def test_random_layouts_give_what_one_device_gives_or_a_refusal_by_name(drawn):
    text, arrays, weights, sizes, where = drawn
    given = inputs_of(text, arrays)
    used = [w for w in weights if _reaches(text, w)]
    shapes = {name: x.shape for name, x in given.items()}
    try:
        plan = Plan(program(text), shapes, sizes, where, used)
    except ValueError as error:
        SEEN["refused"] += 1
        assert str(error).split()[0].strip(":") in arrays
        return
    SEEN["ran"] += 1
    one = Plan(program(text), shapes, {"p": 1}, {}, used)
    seed = numpy.random.RandomState(1).randn(*one.out.shape)
    right, found = (on(p, given, seed) for p in (one, plan))
    scale = max(1, abs(right[0]).max())
    numpy.testing.assert_allclose(found[0] / scale, right[0] / scale, atol=1e-12)
    for name, x in right[1].items():
        scale = max(1, abs(x).max())
        numpy.testing.assert_allclose(found[1][name] / scale, x / scale, atol=1e-11,
                                      err_msg=name)
    assert found[2] == {a: [n] * prod(sizes.values()) for a, n in plan.sent(8).items()}


def _reaches(text, weight):
    """Whether the last line depends on `weight`."""
    reached = {weight}
    for line in text.splitlines():
        name, *words = line.split()
        if reached & {*words}:
            reached.add(name)
    return name in reached


def test_most_random_programs_were_run():
    assert SEEN["ran"] > SEEN["refused"]


# ---- The ways that the book has by hand ----

DECODER = transformer.Decoder(vocab=64, width=32, heads=4, layers=2, tied=False)
PARAMS = transformer.init_params(DECODER, dtype="float64")
TOKENS, TARGETS = numpy.random.RandomState(1).randint(64, size=(2, 16, 4))
GIVEN, NAMES = programs.arrays(DECODER, PARAMS, TOKENS, TARGETS)
SIZES_OF = {name: x.shape for name, x in GIVEN.items()}


def compiled(where, sizes, **options):
    """Losses, gradients by the names of `transformer`, bytes, and the plan."""
    plan = Plan(programs.decoder(DECODER), SIZES_OF, sizes, where, NAMES, **options)
    losses, gradients, sent = on(plan, GIVEN, 1 / TOKENS.size)
    assert sent == {a: [n] * prod(sizes.values()) for a, n in plan.sent(8).items()}
    found = programs.renamed_gradients(DECODER, gradients)
    return losses.T.reshape(-1), found, sent, plan


def hand_written(k, way=TENSOR):
    devices = try_all_devices(k)
    parts = transformer.split(PARAMS, devices, DECODER)
    with traffic.count(devices) as moved:
        losses, backward = transformer.loss(TOKENS, TARGETS, parts, DECODER, way)
        backward()
    grads = [{name: p.grad for name, p in part.items()} for part in parts]
    return losses[0].asnumpy(), transformer.join(grads), moved.sent


@pytest.fixture(scope="module")
def right():
    return hand_written(1)


@pytest.mark.parametrize("k", [2, 4])
@pytest.mark.parametrize("where, way", [
    (programs.tensor(DECODER), TENSOR), (programs.sequence(DECODER), SEQUENCE),
])
def test_heads_positions_and_vocabulary_as_by_hand(k, where, way):
    losses, gradients, sent, _ = compiled(where, {"tensor": k})
    by_hand = hand_written(k, way)
    numpy.testing.assert_allclose(losses, by_hand[0], atol=1e-12)
    equal(gradients, by_hand[1])
    assert sent == {"tensor": by_hand[2]}


@pytest.mark.parametrize("where, way, more", [
    # By hand, the gradients of all norms, gains and shifts, are summed as one array.
    (programs.tensor(DECODER), TENSOR, 0),
    (programs.sequence(DECODER), SEQUENCE, 2 * len(DECODER.halves()) - 1),
])
def test_the_kinds_of_collectives_are_those_by_hand(monkeypatch, where, way, more):
    calls = Counter()

    def counted(kind, ring):
        def call(*given):
            calls[kind] += 1
            return ring(*given)

        monkeypatch.setattr(divided_layers.ring, kind, call)

    for kind in ("reduce_scatter", "allgather"):  # an allreduce is one of each
        counted(kind, getattr(divided_layers.ring, kind))
    hand_written(2, way)
    by_hand, _ = dict(calls), calls.clear()
    compiled(where, {"tensor": 2})
    assert calls == {kind: n + more for kind, n in by_hand.items()}


@pytest.mark.parametrize("k", [2, 4])
@pytest.mark.parametrize("where, shard, counts", [
    (programs.data(), "none", {"allreduce": 1}),
    (programs.zero3(SIZES_OF, NAMES), "parameters",
     {"allgather": 2, "reduce-scatter": 1}),
])
def test_data_parallelism_and_zero_3_as_by_hand(right, k, where, shard, counts):
    _, gradients, sent, plan = compiled(where, {"data": k}, again=True)
    equal(gradients, right[1])
    sizes = [x.size for x in PARAMS.values()]
    assert sent["data"] == shards.bytes_sent(sizes, k, shard, itemsize=8)
    assert plan.counts() == {
        (kind, "data"): n * len(NAMES) for kind, n in counts.items()}


def test_two_by_two_by_two_as_by_hand(right):
    stages = {name: "1" for name in NAMES if name[:2] == "1." or name[:3] == "end"}
    stages["w"] = "1"
    cut = programs.tensor(DECODER)
    where = {**programs.data(), **{
        name: cut.get(name, " ".join("." * len(SIZES_OF[name])))
        + f" @pipeline={stages.get(name, 0)}" for name in NAMES}}
    sizes = {"pipeline": 2, "data": 2, "tensor": 2}
    plan = Plan(programs.decoder(DECODER), SIZES_OF, sizes, where, NAMES)
    losses, found, sent = on(plan, GIVEN, 1 / TOKENS.size)
    equal(programs.renamed_gradients(DECODER, found), right[1])
    numpy.testing.assert_allclose(losses.T.reshape(-1), right[0], atol=1e-12)
    assert sent == plan.by_device(8)
    assert sent == by_hand.expected(DECODER, sizes, TOKENS.shape, itemsize=8)


def test_a_weight_of_one_stage_must_be_said_to_lie_there():
    where = {"up": ". . @p=0", "down": ". . @p=1"}
    text = "u = einsum nd,df->nf x up\ny = einsum nf,fd->nd u down\n"
    plan = planned(where, {"p": 2}, text)
    assert plan.counts() == {("send", "p"): 2}
    message = "tie: the array lies on all of p, but only @p=1 uses it"
    with pytest.raises(ValueError, match=message):
        planned(where, {"p": 2}, text + "z = einsum nd,df->nf y tie",
                {**SHAPES, "tie": (4, 16)}, ["up", "down", "tie"])


@pytest.mark.parametrize("k", [2, 4])
def test_ulysses_moves_four_arrays_each_way_in_each_block(right, k):
    _, gradients, sent, plan = compiled(programs.ulysses(DECODER), {"seq": k})
    equal(gradients, right[1])
    assert plan.counts()["all-to-all", "seq"] == 8 * DECODER.layers
    parts = TOKENS.size * DECODER.width * 8 // k * (k - 1) // k
    weights = sum(x.size for x in PARAMS.values()) * 8 * 2 * (k - 1) // k
    assert sent["seq"] == [8 * DECODER.layers * parts + weights] * k


EXPERTS = """
p    = softmax gne->gne           logits
row  = einsum gnec,gnd->gecd      mask x
u    = einsum gecd,edh->gech      row W1
c    = add    gech,eh->gech       u b1
r    = relu   gech->gech          c
v    = einsum gech,ehd->gecd      r W2
o    = add    gecd,ed->gecd       v b2
gate = einsum gnec,gne->gnec      mask p
y    = einsum gnec,gecd->gnd      gate o
"""


@pytest.mark.parametrize("k", [2, 4])
def test_experts_as_by_hand_when_each_gets_the_same_number_of_tokens(k):
    n, d, h, E = 8, 4, 6, 4
    rng = numpy.random.RandomState(0)
    x, W = rng.randn(k, n, d), rng.randn(d, E)
    x[..., :E] += 50 * numpy.eye(E)[numpy.arange(n) % E] @ numpy.linalg.pinv(W)
    blocks = [[rng.randn(d, h), rng.randn(h), rng.randn(h, d), rng.randn(d)]
              for _ in range(E)]
    devices = try_all_devices(k)
    Xs, routers = ([np.array(a, dtype="float64", ctx=c) for a, c in zip(xs, devices)]
                   for xs in (x, [W] * k))
    held = experts.split_experts(blocks, devices)
    with traffic.count(devices) as moved:
        Ys, saved = experts.forward(Xs, routers, held)
        dXs, dWs, found = experts.backward([np.ones_like(Y) for Y in Ys], saved,
                                           routers, held)
    assert all(p.counts.tolist() == [n // E] * E for p in saved.routings)
    mask = numpy.zeros((k, n, E, n // E))
    for i, p in enumerate(saved.routings):
        mask[i, p.tokens, p.experts, numpy.arange(n) % (n // E)] = 1
    given = {"x": x, "W": W, "mask": mask, **{
        name: numpy.stack(column)
        for name, column in zip(("W1", "b1", "W2", "b2"), zip(*blocks))}}
    where = {"x": "ep . .", "mask": "ep . . .", "W1": "ep . .", "W2": "ep . .",
             "b1": "ep .", "b2": "ep .", "row": ". ep . .", "o": ". ep . . -> ep . . ."}
    text = "logits = einsum gnd,de->gne x W" + EXPERTS
    plan = planned(where, {"ep": k}, text, {a: v.shape for a, v in given.items()},
                   ["x", "W", "W1", "b1", "W2", "b2"])
    Y, gradients, sent = on(plan, given)
    numpy.testing.assert_allclose(Y, [y.asnumpy() for y in Ys], atol=1e-11)
    right = {"x": numpy.stack([a.asnumpy() for a in dXs]), "W": dWs[0].asnumpy(), **{
        name: numpy.stack([a.asnumpy() for a in column])
        for name, column in zip(("W1", "b1", "W2", "b2"), zip(*found))}}
    for name, g in right.items():
        numpy.testing.assert_allclose(gradients[name], g, rtol=1e-11, atol=1e-10)
    assert plan.counts() == {("all-to-all", "ep"): 4, ("allreduce", "ep"): 1}
    if k == 2:  # the router's sum is naive by hand, which sends the same on two devices
        assert sent["ep"] == moved.sent
