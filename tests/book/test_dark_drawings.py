"""On a dark page a drawing has its ground, and the devices keep their colours."""

import re
import sys

import pytest
from notebook_cells import ROOT

from d2l_ext import palette

sys.path.insert(0, str(ROOT / "_sphinx/ext"))
import dark_drawings

DRAWINGS = sorted((ROOT / "chapters/img").glob("*.svg"))
#: What is the same on both pages: devices, and inks on them.
KEPT = {*palette.DEVICE_COLOURS, "#fff", "#ffffff", "#000", "#16191d"}


def colours(svg):
    return {colour for _, colour in dark_drawings.COLOUR.findall(svg)}


@pytest.mark.parametrize("path", DRAWINGS, ids=lambda path: path.stem)
def test_every_colour_of_a_drawing_is_a_devices_or_has_a_dark_form(path):
    svg, white = path.read_text("utf-8"), set(dark_drawings.DARK)
    assert colours(svg) <= KEPT | white
    assert not colours(dark_drawings.dark(svg)) & white


def luminance(colour):
    parts = [int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)]
    low = [p / 12.92 if p <= 0.04045 else ((p + 0.055) / 1.055) ** 2.4 for p in parts]
    return 0.2126 * low[0] + 0.7152 * low[1] + 0.0722 * low[2]


@pytest.mark.parametrize("ground", ["#121212", "#2f3338", "#12324a", "#4a2812"])
@pytest.mark.parametrize("word", ["#222", "#444", "#555"])
def test_words_on_any_dark_ground_have_enough_contrast(word, ground):
    light = luminance(dark_drawings.DARK[word])
    assert (light + 0.05) / (luminance(ground) + 0.05) > 4.5


def test_an_image_is_there_for_light_pages_and_for_dark_ones():
    body = dark_drawings.both('<p><img alt="A" src="_images/ring.svg" width="9" /></p>')
    assert re.findall(r'class="(.*?)".*?src="(.*?)"', body) == [
        ("only-light", "_images/ring.svg"), ("only-dark", "_images/ring.dark.svg"),
    ]  # fmt: skip
    assert body.count('alt="A"') == 2
    assert dark_drawings.both("<p>x.svg</p>") == "<p>x.svg</p>"
