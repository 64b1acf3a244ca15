"""The figure of a step shows what `train_batch` does, and the bytes that it moves."""

import inspect

import pytest
from figure_checks import assert_framed, assert_same_as_python, browse, choosing, soup

import d2l_ext  # noqa: F401  (before mxnet)
from bookkit.figures import data_parallel_step as module
from bookkit.figures import data_parallel_step_svg as twin
from bookkit.figures.data_parallel_step import BATCHES, CONTROLS, MAX_DEVICES, data
from bookkit.figures.data_parallel_step_svg import ACTS, crossed, moment, summary
from d2l_ext import data_parallel
from d2l_ext.data_parallel import lenet, traffic
from d2l_ext.data_parallel.minibatch import split_batch
from d2l_ext.devices import try_all_devices

DATA = data()
COUNTS = range(1, MAX_DEVICES + 1)


def made(k, n=256):
    choice = {"devices": k, "batch": n}
    return {**twin.state(DATA, choice), "name": "data-parallel-step"}


def size_of(arrays):
    return sum(x.size * x.dtype.itemsize for x in arrays)


def examples(n):
    from mxnet import np

    return np.ones((n, 1, 28, 28)), np.zeros(n, dtype="int32")


def boxes(d, now):
    """What stands on the devices: (column, row) -> (label, whether it is new)."""
    found = {}
    for box in soup(twin.drawing(d, now)).find_all("g", class_="work"):
        x, y = int(box.rect["x"]), int(box.rect["y"])
        column = [twin.left(i) for i in range(d["k"])].index(x)
        row = [twin.top(d, r) for r in range(len(twin.ROWS))].index(y)
        found[column, twin.ROWS[row][0]] = box.text, "now" in box["class"]
    return found


@pytest.mark.parametrize("k", COUNTS)
def test_the_bytes_of_the_figure_are_those_of_a_step_of_the_library(k):
    d, devices = made(k, 12), try_all_devices(k)
    X, y = examples(12)
    replicas = [data_parallel.get_params(lenet.init_params(), c) for c in devices]
    shards = list(zip(*split_batch(X, y, devices)))
    assert [len(X_shard) for X_shard, _ in shards] == d["shards"]
    with traffic.count(devices) as moved:
        data_parallel.train_batch(X, y, replicas, devices, lr=0.1)
    assert (moved.sent, moved.received) == (d["sent"], d["received"])
    for i, (replica, shard) in enumerate(zip(replicas, shards)):
        assert size_of(replica) == size_of(p.grad for p in replica) == d["params"]
        came = size_of(replica) + size_of(shard)
        assert crossed(d, i, 4) == (came, 0)
        gathered = (came, moved.sent[i]) if i else (came + moved.received[0], 0)
        assert crossed(d, i, 5) == gathered
        assert crossed(d, i, len(ACTS)) == (came + moved.received[i], moved.sent[i])


def test_the_acts_come_in_the_order_of_the_librarys_source():
    source = inspect.getsource(data_parallel.train_batch).split('"""')[2]
    words = ("split_batch(", "model.lenet(", ".backward(", "allreduce(", "d2l.sgd(")
    places = [source.index(word) for word in words]
    assert places == sorted(places)
    assert ACTS == ("copy", "split", "forward", "backward", "gather", "broadcast",
                    "update")  # fmt: skip


def test_a_device_holds_more_with_every_act_and_only_what_was_made():
    d, rows = made(3, 8), [title for title, _, _ in twin.ROWS]
    held = (0, 1, 2, 3, 4, 4, 5, 6)  # rows that are filled after each act
    for now, filled in enumerate(held):
        found = boxes(d, now)
        assert set(found) == {(i, title) for i in range(3) for title in rows[:filled]}
        new = {title for (_, title), (_, is_new) in found.items() if is_new}
        assert new == ({rows[filled - 1]} if filled and now != 5 else set())
    assert found[0, "shard"][0] == "3 images" and found[2, "shard"][0] == "2 images"
    assert found[1, "gradient"][0] == "of 3 images"
    assert found[1, "sum"][0] == "of 8 images"
    assert found[1, "updated"][0] == "516,272 B"


@pytest.mark.parametrize("k", COUNTS)
def test_messages_go_to_device_0_and_back(k):
    d = made(k)
    arrows = [soup(twin.drawing(d, now)).find_all("path", class_="arrow")
              for now in range(len(ACTS) + 1)]  # fmt: skip
    assert [len(a) for a in arrows] == [0, k, k, 0, 0, k - 1, k - 1, k - 1]
    for to, back in zip(arrows[5], arrows[6]):
        start, end = to["d"][1:].split("L")
        assert back["d"] == f"M{end}L{start}"
        assert int(end.split()[0]) < int(start.split()[0])  # device 0 is at the left


def test_the_words_say_the_shards_and_the_bytes():
    assert summary(made(3, 8)) == (
        "k = 3 devices, a minibatch of n = 8 images: shards of 3, 3, 2. Every device "
        "holds all 516,272 bytes of the parameters, and as many of gradients. The "
        "allreduce sends 2,065,088 bytes in all, 1,032,544 of them from device 0, "
        "however many images there are."
    )
    assert summary(made(1)).endswith("of 256 images. There is nothing to sum.")
    assert moment(made(4), 2) == (
        "Step 2 of 7, split: the devices get 64, 64, 64, 64 of 256 images."
    )
    assert "devices 1 to 3 send 516,272 bytes each to device 0" in moment(made(4), 5)
    assert "device 1 sends 516,272 bytes" in moment(made(2), 5)
    assert "copies nothing" in moment(made(1), 5)


def test_without_scripts_the_figure_is_complete():
    first = {"devices": 2, "batch": 256, "clock": 7}
    html = module.figure().data
    assert_framed(html, first, CONTROLS, twin, DATA, "data-parallel-step")


@pytest.mark.parametrize(
    "devices, batch, message",
    [
        (5, 256, "the figure shows 1 to 4 devices, not 5"),
        (2, 6, "the figure shows minibatches of 4, 8, … 256, not 6"),
    ],
)
def test_what_the_figure_cannot_show_is_refused(devices, batch, message):
    with pytest.raises(ValueError, match=message):
        module.figure(devices, batch)


def test_in_a_browser_every_act_is_the_same_as_in_python(tmp_path):
    choices = [
        {"devices": k, "batch": n, "clock": now}
        for k in COUNTS
        for n in (BATCHES[0], 100, 256)
        for now in range(len(ACTS) + 1)
    ]
    steps = choosing(choices, whole=lambda i: True)
    seen = browse(module.figure().data, steps, tmp_path)
    assert_same_as_python(seen, choices, twin, DATA, "data-parallel-step")
