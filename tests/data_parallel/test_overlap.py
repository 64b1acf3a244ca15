"""Buckets fill from the last layer; a slow link delivers what was sent."""

import d2l_ext  # noqa: F401, I001  (before mxnet)
import re
from math import inf

import pytest
from held_devices import TWO, held, order_on
from mxnet import cpu, np, npx
from notebook_cells import ROOT

from d2l_ext.data_parallel import allreduce, get_params, overlap, traffic
from d2l_ext.devices import timeline, try_all_devices
from d2l_ext.pipeline.microbatch import dense, init_dense

npx.set_np()


@pytest.mark.parametrize("sizes, limit, buckets", [
    ([4, 2, 3, 1, 5], 5, [[4], [2, 3], [1], [0]]),
    ([1, 9, 1], 5, [[2], [1], [0]]),
    ([1, 1, 1], 3, [[0, 1, 2]]),
    ([], 3, []),
])
def test_a_bucket_takes_what_fits_from_the_last_parameter_on(sizes, limit, buckets):
    assert overlap.fill_buckets(sizes, limit) == buckets


def test_the_last_buckets_leave_before_backward_has_reached_the_first_layers(devices):
    """MXNet's backward of six layers is two bulks: the messages go between them."""
    X, y = np.ones((8, 6)), np.zeros(8, dtype="int32")
    replicas = [overlap.attach_buckets(get_params(init_dense(6, 6), d), limit=200)
                for d in devices]

    def sent():
        """The messages between the last two bulks of each device."""
        for lane in order_on(
            devices, lambda: overlap.train_batch(X, y, replicas, devices, 0.1, dense)
        ):
            backward = [i for i, name in enumerate(lane) if name == "ImperativeBulk"]
            yield lane[backward[-2] : backward[-1]].count("CopyCPU2CPU")

    # Four, unless the other device has not come so far when the second bulk begins.
    found = [[*sent()][1] for _ in range(5)]
    assert 0 < max(found) <= 4 and len(replicas[0]) == 6


@pytest.mark.parametrize("form, left, wide", [("", 96, 24), (".narrow", 64, 12)])
def test_the_drawing_hides_the_messages_that_it_says(form, left, wide):
    text = (ROOT / f"chapters/img/overlap{form}.svg").read_text("utf-8")
    group = re.compile(r'<g fill="url\(#(back|copy)\)">(.*?)</g>', re.DOTALL)
    ends = [[(int(x) + int(width) + 1 - left) / wide
             for x, width in re.findall(r'x="(\d+)" y="\d+" width="(\d+)"', boxes)]
            for _, boxes in group.findall(text)]
    hidden = [sum(end <= max(back) for end in messages)
              for back, _, messages in (ends[:3], ends[3:])]
    assert hidden == [0, 3] and len(ends[2]) == len(ends[5]) == 4
    assert "three of four messages are hidden" in text


# ---- A slow link ----


@pytest.fixture
def devices():
    return try_all_devices(2)


def test_every_allreduce_takes_the_link_and_sums_as_without(devices):
    waited = []
    link = overlap.SlowLink(1e6, 0.5, devices, wait=waited.append)
    for reduce in (allreduce.allreduce, allreduce.allreduce_tree,
                   allreduce.allreduce_ring):
        data = [np.arange(6, ctx=d, dtype="float32") + i for i, d in enumerate(devices)]
        waited.clear()
        with link.between(), traffic.count(devices) as moved:
            reduce(data)
        assert all(x.asnumpy().tolist() == [1, 3, 5, 7, 9, 11] for x in data)
        assert sum(waited) == pytest.approx(
            len(waited) * 0.5 + sum(moved.sent) / 1e6, rel=1e-9
        )


def test_the_link_is_left_when_the_block_ends(devices):
    with overlap.SlowLink(1e6).between() as link:
        assert traffic.links == [link]
    assert traffic.links == []


def test_who_reads_what_is_on_the_link_waits_for_it(devices):
    link = overlap.SlowLink(1e9, 0.2, devices)
    assert link.device == cpu(2)
    with timeline.record([*devices, link.device]) as trace:
        x = np.ones(1000, ctx=devices[0]) * 2
        y = link.send(x, np.zeros(1000, ctx=devices[1])) + 1
    assert y.asnumpy().tolist() == [3] * 1000
    (message,) = [e for e in trace.events if e.name == overlap.MESSAGE]
    assert message.kind == "copy" and message.end - message.start >= 200
    assert max(e.start for e in trace.events) >= message.end


def test_a_message_is_asked_for_while_its_sender_and_the_link_stand_still():
    link = overlap.SlowLink(1e9, beside=TWO)
    x, y = (np.zeros(1000, ctx=device) for device in TWO)
    with held(*TWO, link.device):
        link.send(x + 3, y)
    assert (y.asnumpy() == 3).all()


@pytest.mark.parametrize("shape, dtype", [(4, "float64"), (3, "float32")])
def test_an_array_that_a_message_does_not_fit_is_left_alone(shape, dtype, devices):
    x, to = np.ones(4, ctx=devices[0]), np.zeros(shape, dtype=dtype, ctx=devices[1])
    link = overlap.SlowLink(1e9, beside=devices)
    with pytest.raises(ValueError, match=rf"\(4,\) of .*{dtype}.*one shape and dtype"):
        link.send(x, to)
    assert (to.asnumpy() == 0).all()


@pytest.mark.parametrize("bandwidth, latency", [(0, 0), (-1, 0), (1, -1), (1, inf)])
def test_a_link_that_never_delivers_is_refused(bandwidth, latency):
    with pytest.raises(ValueError, match="never delivers: choose"):
        overlap.SlowLink(bandwidth, latency)
