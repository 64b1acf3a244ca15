"""On a dark page a drawing has its ground, and the devices keep their colours."""

import re
from xml.etree import ElementTree

import dark_drawings
import narrow_drawings
import pytest
from colours import contrast
from notebook_cells import ROOT

from d2l_ext import palette

DRAWINGS = sorted((ROOT / "chapters/img").glob("*.svg"))
#: What is the same on both pages: devices, and inks on them.
KEPT = {*palette.DEVICE_COLOURS, "#fff", "#ffffff", "#000", "#16191d"}


def colours(svg):
    return set(re.findall(r"(?<!&)#[0-9a-fA-F]{3,8}\b", svg))


@pytest.mark.parametrize("path", DRAWINGS, ids=lambda path: path.stem)
def test_every_colour_of_a_drawing_is_a_devices_or_has_a_dark_form(path):
    svg, white = path.read_text("utf-8"), set(dark_drawings.DARK)
    assert colours(svg) <= KEPT | white
    assert not colours(dark_drawings.dark(svg)) & white


def words_on(element, ground, boxes, fill="#000000"):
    """(words, their colour, the colour under them) of a drawing that is not turned."""
    kind, fill = element.tag.split("}")[1], element.get("fill", fill)
    numbers = {key: float(element.get(key).split()[0]) if element.get(key) else 0.0
               for key in ("x", "y", "width", "height", "cx", "cy", "r")}
    x, y, w, h, cx, cy, r = numbers.values()
    if "transform" in element.attrib or kind in ("defs", "marker", "pattern"):
        return
    if kind == "rect" and fill[0] == "#" and "fill-opacity" not in element.attrib:
        boxes.append((x, y, x + w, y + h, fill))
    elif kind == "circle" and fill[0] == "#":
        boxes.append((cx - r, cy - r, cx + r, cy + r, fill))
    elif kind == "text" and x:
        under = [box[4] for box in boxes
                 if box[0] <= x <= box[2] and box[1] <= y - 4 <= box[3]]
        yield "".join(element.itertext()), fill, [ground, *under][-1]
    for child in element:
        yield from words_on(child, ground, boxes, fill)


@pytest.mark.parametrize("path", DRAWINGS, ids=lambda path: path.stem)
def test_words_can_be_read_on_what_they_lie_on_light_and_dark(path):
    svg = path.read_text("utf-8")
    for form, ground in ((svg, "#ffffff"), (dark_drawings.dark(svg), "#121212")):
        for words, fill, under in words_on(ElementTree.fromstring(form), ground, []):
            assert contrast(fill, under) >= 3, (words, fill, under)


@pytest.mark.parametrize("ground", ["#121212", "#2f3338", "#12324a", "#4a2812"])
@pytest.mark.parametrize("word", ["#222", "#444", "#555"])
def test_words_on_any_dark_ground_have_enough_contrast(word, ground):
    assert contrast(dark_drawings.DARK[word], ground) > 4.5


def test_an_image_is_there_for_light_pages_and_for_dark_ones():
    image = '<p><img alt="A" src="_images/ring.svg" width="9" /></p>'
    body = dark_drawings.both(image, {})
    assert re.findall(r'class="(.*?)".*?src="(.*?)"', body) == [
        ("only-light", "_images/ring.svg"), ("only-dark", "_images/ring.dark.svg"),
    ]
    assert body.count('alt="A"') == 2
    assert dark_drawings.both("<p>x.svg</p>", {}) == "<p>x.svg</p>"


HEAD = '<svg viewBox="0 0 700 90"{} font-size="13"><title>A</title>'
WHITE = '<rect width="700" height="90" fill="#ffffff"/><text x="400">B</text></svg>'


def test_on_a_phone_a_drawing_has_its_parts_below_one_another_or_its_own_file():
    image = '<img alt="A" src="_images/ring.svg" />'
    cut = HEAD.format(' data-rows="0-350;0-40 350-700"') + WHITE
    body = dark_drawings.both(image, {"ring": cut})
    assert re.findall(r'srcset="(.*?)"><img class="(.*?)"', body) == [
        ("_images/ring.narrow.svg", "only-light"),
        ("_images/ring.narrow.dark.svg", "only-dark"),
    ]
    whole = {"ring": HEAD.format("") + WHITE}
    assert "<picture>" not in dark_drawings.both(image, whole)
    assert dark_drawings.both(image, {**whole, "ring.narrow": "<svg/>"}) == body
    linked = dark_drawings.both(f'<a href="x">{image}</a>', whole)
    assert linked.startswith('<a href="x"><img ') and linked.endswith(" /></a>")
    form = narrow_drawings.narrow(cut)
    assert 'viewBox="0 0 390 180"' in form and "data-rows" not in form
    assert re.findall(r'<svg x="(\d+)" y="(\d+)" .*?viewBox="(\d+) 0 (\d+) ', form) == [
        ("20", "0", "0", "350"), ("0", "90", "0", "40"), ("40", "90", "350", "350"),
    ]
    assert form.count("#ffffff") == form.count("<title>") == form.count(">B<") == 1
