"""Each check of a page in a browser finds what it is there to find."""

import page_checks
import pytest

pytestmark = page_checks.needs_chromium


@pytest.fixture(scope="module")
def page():
    with page_checks.new_page() as page:
        yield page


FIGURE = """<div class="d2l-figure" id="fig"><div class="controls" role="group"
aria-label="Controls"><label>A <input type="range" data-role="a" min="0" max="4"
value="2"></label></div><svg role="img" aria-label="A line" viewBox="0 0 400 40"
width="350"><text x="{x}" y="20" font-size="11">words</text>{more}</svg><p>{p}</p>
<script>document.querySelector("input").oninput = (e) => {{ {act} }}</script></div>"""
ACT = 'document.querySelector("#fig p").textContent = e.target.value'


def figure(x=10, more="", p="Some words.", act=ACT):
    return FIGURE.format(x=x, more=more, p=p, act=act)


DRAWING = """<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="18"
viewBox="0 0 {width} 18"><text x="9" y="12" font-size="11">words</text></svg>"""
DARK_PAGE = """<style>@media (prefers-color-scheme: dark) { main { background: #222 } }
</style>"""
DARK_ON_DARK = """<rect y="22" width="400" height="18" fill="#0072b2"/>
<text x="20" y="36" font-size="11">more</text>"""
PALE_AT_4 = """; document.querySelector("text").style.fill =
    e.target.value == 4 ? "#ccc" : "#000" """
FAULTY = {
    "nothing": ("", figure()),
    "layout at 390": ("", '<p style="width: 900px">Wide.</p>'),
    "layout at 390: no drawing": ("", '<img src="none.svg" width="9" height="9">'),
    "drawings on a phone: too small": ("", figure().replace("350", "250")),
    "drawings on a phone: scrolls in silence": (
        "", ('<div class="scroll" style="width: 300px; overflow: auto">'
             f'<div style="width: 500px">{figure()}</div></div>')),
    "drawings on a phone: cut off": (
        "", ('<div style="overflow: auto"><img src="_images/wide.svg" width="500" '
             'height="9" alt="Wide."></div>')),
    "drawings on a phone, their words": (
        "", '<img src="_images/wide.svg" width="190" height="9" alt="Wide.">'),
    "drawings at one width": (
        "<style>@media (width < 600px) { img { display: none } }</style>",
        '<img src="_images/wide.svg" width="380" height="18" alt="Wide.">'),
    "plots on a phone": (
        "", ('<div class="cell_output"><img src="_images/plot.svg" '
             'style="width: 350px"></div>')),
    "opening: late": (
        "", ("<section><section><p style='height: 900px'></p><h2>One</h2></section>"
             "</section>")),
    "opening: no picture": ("", "<section><section><h2>One</h2></section></section>"),
    "menu": (
        "", ('<div class="bd-sidebar-primary" style="position: absolute; top: 2000px">'
             '<ul><li class="current active"><a href="#">A page</a></li></ul></div>')),
    "layout at 1400": ("", '<p>A</p><p style="margin-top: -40px">B</p>'),
    "contrast, light": ("", '<p style="color: #888; background: #fff">Pale.</p>'),
    "contrast, dark": (
        "<style>@media (prefers-color-scheme: dark) { p { color: #666 } }</style>",
        '<p style="background: #222">Pale in the dark.</p>',
    ),
    "contrast, light: of a drawing": ("", figure(more=DARK_ON_DARK)),
    "contrast, dark: of a drawing": (DARK_PAGE, figure()),
    "accessibility": ("", '<img src="data:image/gif;base64,R0lGODlhAQABAAAAACw=">'),
    "requests on a phone": (
        '<link rel="prefetch" href="http://example.org/x.css">', ""),
    "console on a desktop": ("<script>missing();</script>", ""),
    "figures": ("", figure(act="")),
    "figures: outside": ("", figure(x=395)),
    "figures in wide letters": ("", figure(x=362)),
    "figures: nothing to operate": ("", figure().replace("<input", "<output", 1)),
    "figures: a control that is hidden": (
        "", figure().replace("<input", '<input style="display: none"', 1)),
    "figures: a button that does nothing": (
        "", figure().replace("<label>", "<button>B</button><label>", 1)),
    "figures: on each other": ("", figure(more='<text x="12" y="21">more</text>')),
    "figures: no value": ("", figure(act=ACT + " / undefined")),
    "figures: pale in one state": ("", figure(act=ACT + PALE_AT_4)),
}


@pytest.mark.parametrize("what", FAULTY)
def test_a_page_with_one_fault_is_found(page, tmp_path, what):
    head, body = FAULTY[what]
    (tmp_path / "page.html").write_text(page_checks.PAGE.format(head=head, body=body))
    images = tmp_path / "_images"
    images.mkdir()
    for name, width in (("wide", 380), ("plot", 900)):
        (images / f"{name}.svg").write_text(DRAWING.format(width=width))
    url = (tmp_path / "page.html").as_uri()
    folder = "chapters/" if what.startswith(("opening", "menu")) else ""
    found = page_checks.visit(page, url, f"{folder}page.html")
    kinds = {kind for kind, texts in found.items() if texts}
    expected = what.split(":")[0]
    assert expected in kinds or (what == "nothing" and not kinds), found
