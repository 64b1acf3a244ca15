"""The drawings at the top of two chapters show what their words say."""

import re

import pytest
from notebook_cells import ROOT

from d2l_ext.palette import DEVICE_COLOURS
from d2l_ext.pipeline.schedule import clock, gpipe, interleaved, op_clock, zero_bubble

BOX = re.compile(r'<rect x="([\d.]+)" y="(\d+)" width="(\d+)" height="(\d+)"')


def drawing(name):
    return (ROOT / f"chapters/img/{name}.svg").read_text("utf-8")


def boxes(text):
    return [tuple(float(number) for number in found) for found in BOX.findall(text)]


@pytest.mark.parametrize("form, left, wide", [("", 96, 24), (".narrow", 7, 14)])
def test_the_drawing_of_micro_batches_is_the_clocks(form, left, wide):
    text = drawing(f"micro_batches{form}")
    for s in range(3):
        group_of = re.compile(rf'<g fill="{DEVICE_COLOURS[s]}">(.*?)</g>', re.DOTALL)
        groups = group_of.findall(text)
        for group, m, slot in zip(groups, (1, 4), (4 * wide, wide)):
            drawn = [(x - 1 - left, width + 2) for x, _, width, _ in boxes(group)]
            lane = [x for x in clock(gpipe(3, m)) if x.stage == s]
            assert drawn == [(slot * x.start, slot) for x in lane]
    whole, cut = (max(x.end for x in clock(gpipe(3, m))) for m in (1, 4))
    assert "the same work in half of the time" in text and 4 * whole == 2 * cut


@pytest.mark.parametrize("form, left, wide", [("", 96, 34), (".narrow", 10, 22)])
def test_the_drawing_of_shorter_bubbles_is_the_clocks(form, left, wide):
    text = drawing(f"shorter_bubbles{form}")
    for d in range(3):
        group_of = re.compile(rf'<g fill="{DEVICE_COLOURS[d]}">(.*?)</g>', re.DOTALL)
        for group, orders in zip(
            group_of.findall(text), (interleaved(3, 3, 1), zero_bubble(3, 3))
        ):
            drawn = [(x - 1 - left, width + 2) for x, _, width, _ in boxes(group)]
            times = [(s, e) for at, s, e in op_clock(orders).values() if at == d]
            assert drawn == [(wide * s, wide * (end - s)) for s, end in times]


def test_the_drawing_of_buckets_has_the_empty_places_that_it_names():
    text = drawing("buckets")
    full, empty = (
        [row for row in text.splitlines() if sign in row]
        for sign in ('fill="#555555"', 'fill="none"')
    )
    for left, right, places in ((30, 300, 80), (390, 660, 52)):
        held, open_ = (
            sum(w for x, _, w, _ in boxes("\n".join(rows)) if left <= x < right) / 26
            for rows in (full, empty)
        )
        assert held + open_ == places
        assert f"{open_:.0f} of {places} time steps are padding" in text
