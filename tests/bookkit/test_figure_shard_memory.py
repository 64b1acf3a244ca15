"""The figure of ZeRO's stages computes what the library's formulas do."""

import pytest
from figure_checks import State, labels, soup

import d2l_ext  # noqa: F401  (before mxnet)
from bookkit.figures import frame
from bookkit.figures.shard_memory import COLOURS, NETWORKS, NUMBERS, OPTIMIZERS, data
from d2l_ext.data_parallel import lenet
from d2l_ext.devices import try_all_devices
from d2l_ext.memory import STAGES, Shards, bytes_held, bytes_sent

SCRIPT = frame.Script("shard_memory", "shards", data())
EACH = "range(4).map((stage) => range(d.k).map((i) => {}(d, i, stage)))"


def made(network, optimizer="Adam", numbers="mixed precision", k=4):
    return State(SCRIPT, {"network": network, "optimizer": optimizer,
                          "numbers": numbers, "devices": k})


@pytest.mark.parametrize("k", [1, 2, 3, 4, 7, 33, 64])
@pytest.mark.parametrize("network", NETWORKS)
def test_bytes_held_and_sent_are_the_librarys(network, k):
    for optimizer in OPTIMIZERS:
        for numbers, itemsize in NUMBERS.items():
            d, state = made(network, optimizer, numbers, k), data()["states"]
            state = state[f"{optimizer},{numbers}"]
            held = SCRIPT.ask(d.choice, EACH.format("held"))
            sent = SCRIPT.ask(d.choice, EACH.format("sent"))
            for stage, name in enumerate(STAGES):
                args = NETWORKS[network], k, name, itemsize
                assert [sum(own) for own in held[stage]] == bytes_held(*args, state)
                assert sent[stage] == bytes_sent(*args)


def test_lenet_is_cut_as_the_library_cuts_it():
    params = lenet.init_params()
    layers = [(None, params[n : n + 2]) for n in range(0, len(params), 2)]
    made_of = Shards(layers, try_all_devices(2), "parameters").sizes
    assert NETWORKS["LeNet"] == made_of


def test_bars_are_as_high_as_their_bytes_and_the_words_say_them():
    d = made("LeNet", "momentum", "float32", 3)
    for stage in range(4):
        boxes = soup(d.drawing(stage)).select("g.work")[3:]
        tops = [int(box.rect["y"]) for box in boxes]
        held = [n for i in range(3) for n in d.held(i, stage)]
        whole = d["whole"]
        ends = [216 - 170 * sum(held[i - i % 3 : i + 1]) // whole for i in range(9)]
        assert tops == pytest.approx(ends, abs=1)
    assert "516,272 B" in labels(made("LeNet", "SGD", "mixed precision", 2).drawing(3))
    assert made("six layers of 128 × 128").moment(1) == (
        "Stage 1 of 3: the optimizer's states are divided. Device 0 holds 196,608 "
        "bytes of weights, 196,608 of gradients, 294,912 of states; the fullest device "
        "43.8% of a whole replica. A step sends 294,912 bytes from the busiest."
    )


def test_a_part_has_a_colour_for_light_pages_and_one_for_dark():
    first = soup(made("LeNet").drawing(0)).select("g.work rect")[0]
    assert first["fill"] == COLOURS[0][0] and COLOURS[0][1] in first["style"]
