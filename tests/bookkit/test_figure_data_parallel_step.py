"""The figure of a step shows what `train_batch` does, and the bytes that it moves."""

import pytest
from figure_checks import State, labels, soup

import d2l_ext  # noqa: F401  (before mxnet)
from bookkit.figures import frame
from bookkit.figures.data_parallel_step import MAX_DEVICES, data
from d2l_ext import data_parallel
from d2l_ext.data_parallel import lenet, traffic
from d2l_ext.data_parallel.minibatch import split_batch
from d2l_ext.devices import try_all_devices

SCRIPT = frame.Script("data_parallel_step", "step", data())
COUNTS = range(1, MAX_DEVICES + 1)
#: What stands on a device, from top to bottom.
ROWS = ["parameters", "shard", "losses", "gradient", "sum", "updated"]


def made(k, n=256):
    return State(SCRIPT, {"devices": k, "batch": n})


def size_of(arrays):
    return sum(x.size * x.dtype.itemsize for x in arrays)


def examples(n):
    from mxnet import np

    return np.ones((n, 1, 28, 28)), np.zeros(n, dtype="int32")


def boxes(d, now):
    """What stands on the devices: (column, row) -> (label, whether it is new)."""
    found = {}
    columns, rows = SCRIPT.ask(
        d.choice, "[d.shards.map((_, i) => left(d, i)), ROWS.map((_, r) => top(d, r))]"
    )
    for box in soup(d.drawing(now)).find_all("g", class_="work"):
        place = columns.index(int(box.rect["x"])), rows.index(int(box.rect["y"]))
        found[place[0], ROWS[place[1]]] = box.text, "now" in box["class"]
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
        assert d.crossed(i, 4) == [came, 0]
        gathered = [came, moved.sent[i]] if i else [came + moved.received[0], 0]
        assert d.crossed(i, 5) == gathered
        assert d.crossed(i, d.steps()) == [came + moved.received[i], moved.sent[i]]


def test_the_acts_have_their_names_in_the_order_in_which_they_run():
    """That the library's lines run so is seen in test_figure_listings."""
    acts = [made(2).moment(now).split(", ")[1].split(":")[0] for now in range(1, 8)]
    assert acts == ["copy", "split", "forward", "backward", "allreduce", "allreduce",
                    "update"]


def test_a_device_holds_more_with_every_act_and_only_what_was_made():
    d = made(3, 8)
    for now, filled in enumerate((0, 1, 2, 3, 4, 4, 5, 6)):  # rows after each act
        found = boxes(d, now)
        # Device 0 has added all gradients before the others get the sum.
        held = {(i, title) for i in range(3) for title in ROWS[:filled]}
        assert set(found) == held | ({(0, "sum")} if now == 5 else set())
        new = {place for place, (_, is_new) in found.items() if is_new}
        row = {(i, ROWS[filled - 1]) for i in range(3)} if filled else set()
        assert new == {5: {(0, "sum")}, 6: row - {(0, "sum")}}.get(now, row)
    assert found[0, "shard"][0] == "3 images" and found[2, "shard"][0] == "2 images"
    assert found[1, "gradient"][0] == "of 3 images"
    assert found[1, "sum"][0] == "of 8 images"
    assert found[1, "updated"][0] == "516,272 B"


@pytest.mark.parametrize("k", COUNTS)
def test_messages_go_to_device_0_and_back(k):
    d = made(k)
    arrows = [soup(d.drawing(now)).find_all("path", class_="arrow")
              for now in range(8)]
    assert [len(a) for a in arrows] == [0, k, k, 0, 0, k - 1, k - 1, k - 1]
    for to, back in zip(arrows[5], arrows[6]):
        start, end = to["d"][1:].split("L")
        assert back["d"] == f"M{end}L{start}"
        assert int(end.split()[0]) < int(start.split()[0])  # device 0 is at the left


def test_the_words_say_the_shards_and_the_bytes():
    assert made(3, 8).summary() == (
        "k = 3 devices, a minibatch of n = 8 images: shards of 3, 3, 2. Every device "
        "stores all 516,272 bytes of the parameters, and as many bytes of gradients. "
        "The allreduce sends 2,065,088 bytes in all, 1,032,544 of them from device 0, "
        "however many images there are."
    )
    assert made(1).summary().endswith("of 256 images. There is nothing to sum.")
    assert made(4).moment(2) == (
        "Step 2 of 7, split: the devices get 64, 64, 64, 64 of 256 images."
    )
    assert "devices 1 to 3 send 516,272 bytes each to device 0" in made(4).moment(5)
    assert made(2).moment(5).endswith(
        ": device 1 sends 516,272 bytes to device 0, which adds.")
    assert "no copies" in made(1).moment(5)
    sent = "sum to devices 1 to 2, 516,272 bytes each."
    assert made(3).moment(6).endswith(sent)
    assert made(2).moment(6).endswith("sum to device 1, 516,272 bytes.")


def test_the_labels_say_what_is_on_its_way_and_what_has_crossed():
    d, sent, came = made(2, 12), 516_272, 516_272 + 6 * (28 * 28 * 4 + 4)
    host = ["host", "parameters, 12 images", *ROWS]
    assert labels(d.drawing(2)) == [
        *host,
        *("18,840 B", "device 0", "516,272 B", "6 images"),
        *("18,840 B", "device 1", "516,272 B", "6 images"),
        "allreduce", "bytes in", "bytes out", f"{came:,}", "0", f"{came:,}", "0",
    ]
    assert labels(d.drawing(5))[-8:] == [
        "allreduce", "516,272 B", "bytes in", "bytes out",
        f"{came + sent:,}", "0", f"{came:,}", "516,272",
    ]
