"""Plans of a decoder: what they compute, keep and cost, and which one is chosen."""

import d2l_ext  # noqa: F401, I001

import numpy
import pytest

from d2l_ext.devices import try_all_devices
from d2l_ext.meshes import programs
from d2l_ext.meshes.compiled import Compiled
from d2l_ext.meshes.mesh import Mesh
from d2l_ext.scale import planner
from d2l_ext.tensor_parallel import transformer

DECODER = transformer.Decoder(vocab=16, width=16, heads=4, layers=2, tied=False)
BATCH, T = 4, 8
PLANS = {k: planner.candidates(DECODER, BATCH, T, k) for k in (1, 2, 4, 8)}
TOKENS, TARGETS = numpy.random.RandomState(0).randint(16, size=(2, T, BATCH))
ARRAYS, WEIGHTS = programs.arrays(
    DECODER, transformer.init_params(DECODER, dtype="float64"), TOKENS, TARGETS)
CASES = [(k, name) for k in (2, 4) for name in PLANS[k]]


def run(k, name):
    plan = PLANS[k][name]
    made = Compiled(plan, Mesh(try_all_devices(k), **plan.sizes))
    made.forward(ARRAYS)
    return made


@pytest.fixture(scope="module")
def one():
    made = run(1, "one device")
    made.backward(1 / TOKENS.size)
    return made.gradients()


def test_shapes_are_those_of_the_arrays():
    shapes, weights = programs.shapes(DECODER, BATCH, T)
    assert shapes == {name: x.shape for name, x in ARRAYS.items()}
    assert weights == WEIGHTS


@pytest.mark.parametrize("k, name", CASES)
def test_a_plan_keeps_what_is_counted_and_gives_the_gradients_of_one_device(
    one, k, name
):
    made = run(k, name)
    columns = zip(*made.arrays.values())
    kept = [sum(x.size * numpy.dtype(x.dtype).itemsize for x in own
                if x is not None) for own in columns]
    assert planner.memory(made.plan, itemsize=8, gradients=False) == max(kept)
    made.backward(1 / TOKENS.size)
    found = made.gradients()
    assert all(abs(found[name] - x).max() < 1e-12 for name, x in one.items())


@pytest.mark.parametrize("k, name", CASES)
def test_one_device_is_the_busiest_along_all_axes_of_a_plan(k, name):
    plan = PLANS[k][name]
    of_a_device = map(sum, zip(*plan.by_device().values()))
    assert sum(plan.sent().values()) == max(of_a_device)


def test_a_second_forward_takes_the_inputs_that_the_devices_have():
    made = run(2, "data (2)")
    first = made.join(made.plan.out)
    made.backward()
    made.forward()
    assert (made.join(made.plan.out) == first).all()


def test_the_plans_of_two_devices_are_those_that_the_compiler_takes():
    assert [*PLANS[2]] == ["pipeline (2)", "all-to-all (2)", "tensor (2)",
                           "sequence (2)", "data (2)", "ZeRO 3 (2)"]
    assert not [name for name in PLANS[8] if "pipeline (4)" in name]  # two blocks
    assert "all-to-all (8)" not in PLANS[8]  # four heads


def test_states_and_gradients_come_on_top():
    plan = PLANS[2]["ZeRO 3 (2)"]
    numbers = sum(x.size for name, x in ARRAYS.items() if name in WEIGHTS)
    least, more = (planner.memory(plan, gradients=g, states=s)
                   for g, s in ((False, 0), (True, 2)))
    assert more - least == 4 * 3 * numbers // 2
    with pytest.raises(ValueError, match="states must be a number of .* 0, not -1"):
        planner.memory(plan, states=-1)


@pytest.mark.parametrize("name", [n for n in PLANS[4] if "pipeline" not in n])
def test_the_bytes_of_a_step_are_those_of_its_messages(name):
    plan = PLANS[4][name]
    sent = sum(plan.sent(itemsize=8).values())
    assert planner.step_counts(plan, itemsize=8)[4] == sent


def test_devices_share_the_products_and_stages_take_turns():
    (flop, *_), = (planner.step_counts(plan) for plan in PLANS[1].values())
    share = {name: flop / planner.step_counts(plan)[0]
             for name, plan in PLANS[2].items()}
    assert share == {name: 1 if name == "pipeline (2)" else 2 for name in PLANS[2]}
    on_two_cores = planner.step_counts(PLANS[4]["data (4)"], cores=2)
    alone = planner.step_counts(PLANS[4]["data (4)"])
    assert [a / b for a, b in zip(on_two_cores, alone)] == [2, 2, 4, 4, 2]


def test_the_products_of_a_block_in_numbers_one_can_check_by_eye():
    plan = planner.Plan(planner.program("y = einsum nd,df->nf x w"),
                        {"x": (4, 2), "w": (2, 3)}, {"t": 2}, {"x": "t ."}, ["x", "w"])
    # Forward 2·2·2·3, backward twice that; x, w and y twice, and their gradients;
    # the gradient of w, six numbers, is summed: a device sends six in two rounds.
    flop, _, calls, messages, sent = planner.step_counts(plan)
    assert (flop, calls, messages, sent) == (3 * 24, 3, 2, 4 * 6)


@pytest.mark.parametrize("k", [2, 3, 4])
def test_a_loss_over_a_cut_vocabulary_takes_a_message_to_each_other_device(k):
    plan = planner.Plan(planner.program("l = loss nv,n->n z y"),
                        {"z": (5, 12), "y": (5,)}, {"t": k}, {"z": ". t"}, ["z"])
    assert planner.step_counts(plan)[3:] == (k - 1, 4 * 2 * 5 * (k - 1))


def test_tokens_have_four_bytes_whatever_a_number_has():
    shapes, weights = programs.shapes(DECODER, BATCH, T)
    where = {"tokens": "data . -> . ."}
    plan = planner.Plan(programs.decoder(DECODER), shapes, {"data": 2}, where, weights)
    sent = plan.by_device(itemsize=2)["data"][0]
    assert planner.step_counts(plan, itemsize=2)[4] == sent
    assert sent >= 4 * BATCH * T // 2


def test_constants_are_found_again_from_the_seconds_that_they_make():
    machine = planner.Machine(2e-11, 3e-10, 5e-5, 1e-4, 4e-10, cores=2)
    plans = {**planner.probes(), **PLANS[2]}
    seconds = {name: machine.seconds(plan) for name, plan in plans.items()}
    found, errors = planner.fit_machine(plans, seconds, cores=2)
    assert found.seconds(PLANS[4]["data (4)"]) == pytest.approx(
        machine.seconds(PLANS[4]["data (4)"]))
    assert (found.flop, found.alpha) == pytest.approx((2e-11, 1e-4))
    assert max(map(abs, errors.values())) < 1e-6


def test_the_fastest_plan_that_fits_is_chosen_and_what_cannot_fit_is_refused():
    machine = planner.Machine(1e-11, 0, 0, 0, 1e-9)
    by_time = sorted(PLANS[2], key=lambda name: machine.seconds(PLANS[2][name]))
    needs = {name: planner.memory(plan) for name, plan in PLANS[2].items()}
    assert planner.fastest(PLANS[2], machine) == by_time[0]
    for limit in needs.values():
        right = next(name for name in by_time if needs[name] <= limit)
        assert planner.fastest(PLANS[2], machine, limit) == right
    least = min(needs, key=needs.get)
    message = f"no plan fits in 10 bytes per device: the smallest, .*{least[:4]}"
    with pytest.raises(ValueError, match=message):
        planner.fastest(PLANS[2], machine, 10)
    with pytest.raises(ValueError, match="there are no plans: choose another number"):
        planner.fastest(planner.candidates(DECODER, BATCH, T, 127), machine)


def test_two_ways_that_cut_the_same_axis_are_refused():
    shapes, weights = programs.shapes(DECODER, BATCH, T)
    with pytest.raises(ValueError, match="cut the same axis"):
        planner.layouts(DECODER, shapes, weights, {"tensor": 2, "seq": 2},
                        ("sequence", "all-to-all"))


def test_tied_weights_have_no_pipeline():
    tied = transformer.Decoder(vocab=16, width=16, heads=4, layers=2)
    found = planner.candidates(tied, BATCH, T, 4)
    assert [*found] == [name for name in PLANS[4] if "pipeline" not in name]
    shapes, weights = programs.shapes(tied, BATCH, T)
    with pytest.raises(ValueError, match="use a decoder with tied=False"):
        planner.layouts(tied, shapes, weights, {"pipeline": 2}, ("pipeline",))
