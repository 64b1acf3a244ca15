"""One colour per device, one hatch per kind of work, for all eyes, on every page."""

import itertools
import re
from xml.etree import ElementTree

import pytest
from bs4 import BeautifulSoup
from colours import contrast, linear, rgb
from notebook_cells import ROOT, chapters, code_cells, read

import d2l_ext  # noqa: F401  (before mxnet)
from bookkit import style
from bookkit.figures import frame, ring_allreduce
from d2l_ext import palette
from d2l_ext.devices import timeline
from d2l_ext.devices.timeline import kinds

DRAWINGS = sorted(ROOT.glob("chapters/img/*.svg"))
SVG = "{http://www.w3.org/2000/svg}"
WHITE, DARK_PAGE = "#ffffff", "#14181e"


#: How colours look without one kind of cone, on linear RGB: Machado, Oliveira and
#: Fernandes, "A Physiologically-based Model for Simulation of Color Vision Deficiency"
#: (2009), severity 1.
WITHOUT = {
    "red": ((0.152286, 1.052583, -0.204868), (0.114503, 0.786281, 0.099216),
            (-0.003882, -0.048116, 1.051998)),
    "green": ((0.367322, 0.860646, -0.227968), (0.280085, 0.672501, 0.047413),
              (-0.011820, 0.042940, 0.968881)),
    "blue": ((1.255528, -0.076749, -0.178779), (-0.078411, 0.930809, 0.147602),
             (0.004733, 0.691367, 0.303900)),
    "nothing": ((1, 0, 0), (0, 1, 0), (0, 0, 1)),
}


def lab(colour, missing):
    """CIELAB of a colour as it is seen by eyes that miss a kind of cone."""
    seen = [sum(w * x for w, x in zip(row, linear(colour))) for row in WITHOUT[missing]]
    seen = [min(max(x, 0), 1) for x in seen]
    xyz = ((0.4124, 0.3576, 0.1805), (0.2126, 0.7152, 0.0722), (0.0193, 0.1192, 0.9505))
    X, Y, Z = (sum(w * x for w, x in zip(row, seen)) for row in xyz)
    x, y, z = (t ** (1 / 3) if t > 0.008856 else 7.787 * t + 16 / 116
               for t in (X / 0.9505, Y, Z / 1.089))
    return 116 * y - 16, 500 * (x - y), 200 * (y - z)


@pytest.mark.parametrize("missing", WITHOUT)
def test_no_two_of_the_first_four_devices_and_series_look_alike_to_colour_blind_readers(
    missing
):
    first = palette.DEVICE_COLOURS[:4] + palette.SERIES_COLOURS[:4]
    for one, other in itertools.combinations(first, 2):
        pairs = zip(lab(one, missing), lab(other, missing))
        apart = sum((a - b) ** 2 for a, b in pairs) ** 0.5
        assert apart > 10, (one, other)  # 2 or 3 is just told apart, side by side


def drawing_cells():
    """(chapter, source) of each cell that draws bars."""
    for page, path in chapters().items():
        for cell in code_cells(read(path)):
            if re.search(r"\.(bar|barh|broken_barh)\(", cell.source):
                yield pytest.param(cell.source, id=page)


@pytest.mark.parametrize("source", drawing_cells())
def test_bars_stand_on_no_logarithmic_axis(source):
    """A bar begins at zero, which such an axis does not have."""
    assert not re.search(r"loglog|semilog|[\"']log[\"']|log=True", source)


def test_the_legend_of_a_timeline_says_which_hatch_is_which():
    import matplotlib.pyplot as plt

    trace = timeline.Timeline()
    trace.events = [timeline.Event("cpu/0", "dot", "forward", 0, 1),
                    timeline.Event("cpu/0", "back", "backward", 1, 2)]
    legend = timeline.plot(trace).get_legend()
    assert [patch.get_hatch() for patch in legend.get_patches()] == ["", "////"]
    plt.close("all")


def test_devices_and_series_stand_out_from_the_pages_that_they_are_on():
    for colour in palette.DEVICE_COLOURS[:4]:
        assert contrast(colour, WHITE) >= 3 and contrast(colour, DARK_PAGE) >= 3
    assert all(contrast(c, WHITE) >= 3 for c in palette.SERIES_COLOURS)
    assert all(contrast(c, DARK_PAGE) >= 4.5 for c in palette.SERIES_ON_DARK)


def test_words_on_a_devices_colour_can_be_read():
    for i in range(len(palette.DEVICE_COLOURS)):
        assert contrast(palette.colour(i), palette.INKS[i]) >= 4.5
    for ground in (*palette.TINTS, WHITE):
        assert contrast(ground, "#222222") >= 4.5
        assert contrast(ground, palette.SHADES[0]) >= 4.5
    assert contrast(WHITE, palette.ALARM) >= 4.5


def test_every_kind_of_work_has_a_hatch_of_its_own_in_matplotlib_and_in_svg():
    hatches = list(palette.KIND_HATCHES.values())
    assert len(set(hatches)) == len(hatches)
    plain = {kind for kind, hatch in palette.KIND_HATCHES.items() if not hatch}
    assert plain == {"forward"}
    assert set(palette.PATTERNS) == set(palette.KIND_HATCHES) - plain
    assert len(set(palette.PATTERNS.values())) == len(palette.PATTERNS)
    names = ("Convolution", "_backward_Convolution", "sgd_update", "CopyCPU2CPU")
    assert {*kinds([("cpu/0", name) for name in names])} == set(palette.KIND_HATCHES)


def test_timelines_and_figures_take_their_signs_from_one_place():
    assert timeline.DEVICE_COLOURS is palette.DEVICE_COLOURS
    assert timeline.KIND_HATCHES is palette.KIND_HATCHES
    script = frame.Script("ring_allreduce", "x", ring_allreduce.data())
    choice = {"devices": 2, "size": "840"}
    for device, kind in itertools.product(range(9), palette.KIND_HATCHES):
        style = palette.bar(device, kind)
        shape = f'work(d, {device}, "{kind}", [0, 0, 50, 20], "1")'
        box = BeautifulSoup(script.ask(choice, shape), "html.parser")
        assert style["facecolor"] == box.rect["fill"] == palette.colour(device % 8)
        assert box.find("text")["fill"] == palette.INKS[device % 8]
        hatched = [r["fill"] for r in box.find_all("rect")[1:]]
        assert hatched == ([f"url(#x-{kind})"] if style["hatch"] else [])
    with pytest.raises(ValueError, match="unknown kind of work 'sleep': choose one of"):
        palette.bar(0, "sleep")


def test_no_module_but_the_language_and_no_chapter_writes_a_device_colour():
    texts = {path: path.read_text("utf-8") for part in ("d2l_ext", "bookkit")
             for path in ROOT.glob(f"{part}/**/*.py") if path.name != "palette.py"}
    for page, path in chapters().items():
        texts[page] = "\n".join(cell.source for cell in code_cells(read(path)))
    for where, text in texts.items():
        found = [c for c in palette.DEVICE_COLOURS[:4] if c in text.upper()]
        assert not found, where


# Drawings by hand.

def painted(path):
    """Shapes and words of a drawing in the order in which they are painted.

    Yields (element, fill), where the fill may come from a group around the element.
    """

    def walk(element, fill):
        fill = element.get("fill", fill)
        if element.tag in (SVG + "defs", SVG + "title", SVG + "style"):
            return
        yield element, fill
        for child in element:
            yield from walk(child, fill)

    yield from walk(ElementTree.parse(path).getroot(), "#000")


def is_over(text, box):
    """Does the middle of a line of words lie within a rectangle?"""
    x, y = float(text.get("x")), float(text.get("y")) - 4
    half = 3.2 * len("".join(text.itertext()))
    x += {"start": half, "end": -half}.get(text.get("text-anchor"), 0)
    left, top = float(box.get("x", 0)), float(box.get("y", 0))
    inside = left <= x <= left + float(box.get("width"))
    return inside and top <= y <= top + float(box.get("height"))


@pytest.mark.parametrize("path", DRAWINGS, ids=lambda path: path.stem)
def test_a_drawing_has_a_title_and_a_white_ground_and_names_no_colour(path):
    """Its other colours have a form for the dark page: see test_dark_drawings."""
    text = path.read_text("utf-8")
    assert set(re.findall(r'(?:fill|stroke)="([a-z]+)"', text)) <= {"none"}
    root = ElementTree.fromstring(text)
    assert root.find(SVG + "title").text.strip()
    width, height = root.get("viewBox").split()[2:]
    shapes = [(e, fill) for e, fill in painted(path) if e.tag not in (SVG + "svg",)]
    ground, fill = shapes[0]
    assert (ground.get("width"), ground.get("height")) == (width, height)
    assert rgb(fill) == [1, 1, 1]


@pytest.mark.parametrize("path", DRAWINGS, ids=lambda path: path.stem)
def test_the_words_of_a_drawing_stand_out_from_what_is_behind_them(path):
    boxes, problems = [], []
    for element, fill in painted(path):
        if element.tag == SVG + "rect" and fill.startswith("#"):
            boxes.append((element, fill))
        if element.tag == SVG + "text" and not element.get("transform"):
            behind = [ground for box, ground in boxes if is_over(element, box)]
            if contrast(fill, behind[-1]) < 4.5:
                problems.append(("".join(element.itertext()), fill, behind[-1]))
    assert not problems


def test_the_legend_shows_every_colour_and_every_hatch():
    text = (ROOT / "chapters/img/legend.svg").read_text("utf-8")
    drawn = re.findall(r'fill="(#[0-9A-F]{6})"/>\n', text)
    assert tuple(drawn[: len(palette.DEVICE_COLOURS)]) == palette.DEVICE_COLOURS
    for kind, shape in palette.PATTERNS.items():
        assert f'id="{kind}"' in text and f">{shape}</pattern>" in text
        assert f"url(#{kind})" in text and f">{kind}</text>" in text


def test_matplotlib_draws_in_the_books_style():
    """Also outside a notebook, where nobody asks for two dots to a pixel."""
    import matplotlib.pyplot as plt

    with plt.rc_context():
        style.use()
        cycle = plt.rcParams["axes.prop_cycle"].by_key()["color"]
        assert cycle == [*palette.SERIES_COLOURS]
        assert plt.rcParams["figure.figsize"] == [7, 2.8]
        assert not plt.rcParams["axes.spines.top"]
