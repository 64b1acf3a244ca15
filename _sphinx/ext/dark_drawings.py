"""A second form of every drawing, for a dark page: the same shapes on its ground.

Drawings keep to a few colours: a white ground, greys for words and lines on it, pale
tints of devices, and the devices' own colours with their inks. Only what lies on the
ground changes; a device has its colour on both pages, and words on it theirs.
"""

import re
from pathlib import Path

#: What is drawn on white, and what it is where the ground is dark.
DARK = {
    "#222": "#e8e8e8", "#333": "#e8e8e8", "#444": "#cfcfcf", "#555": "#c4c4c4",
    "#555555": "#c4c4c4", "#777777": "#a8a8a8", "#888": "#a0a0a0", "#999": "#8f8f8f",
    "#bbb": "#6a6f75", "#eee": "#2f3338", "#eeeeee": "#2f3338", "#f6f6f6": "#24282d",
    "#ddd": "#3d4248", "#dddddd": "#3d4248", "#DCEBF5": "#12324a",
    "#FBE9DC": "#4a2812", "#00704F": "#4fd0a5", "#B00020": "#ff7d88",
    "#332288": "#a79bf2", "#959532": "#c6c663", "#882255": "#e686b3",
}  # fmt: skip
#: The ground; a plate behind a word, on a device's colour or its hatch; and words in
#: device 0's colour, which is too dark for them.
GROUND, PLATE = '"#ffffff"', '"#fff"'
WORDS, LIGHTER = '"#0072B2"', '"#56B4E9"'
TAG = re.compile(r"<(\w+)\b[^>]*>(?=(?:\s*<(\w+))?)")
COLOUR = re.compile(r'\b(fill|stroke)="(#\w+)"')
IMAGE = re.compile(r'<img ([^>]*src="([^"]*_images/(\w+)\.svg)"[^>]*?)\s*/?>')


def dark(svg):
    """The drawing `svg`, a text, as it is shown on a dark page."""

    def on_dark(tag):
        text = tag[0]
        if tag[1] == "rect" and "fill-opacity" not in text:
            text = text.replace(GROUND, '"none"').replace(PLATE, '"#16191d"')
        if tag[1] == "g" and tag[2] == "rect":
            text = text.replace(PLATE, '"#16191d"')
        if tag[1] == "text" or (tag[1] == "g" and tag[2] == "text"):
            text = text.replace(WORDS, LIGHTER)
        return COLOUR.sub(lambda m: f'{m[1]}="{DARK.get(m[2], m[2])}"', text)

    return TAG.sub(on_dark, svg)


def both(body):
    """The HTML `body` with each drawing twice, one for light pages, one for dark."""

    def pair(found):
        words, address = found[1], found[2]
        other = words.replace(address, address[: -len("svg")] + "dark.svg")
        return "".join(
            f"<img {_with_class(attributes, name)} />"
            for attributes, name in ((words, "only-light"), (other, "only-dark"))
        )

    return IMAGE.sub(pair, body)


def _with_class(attributes, name):
    if 'class="' in attributes:
        return attributes.replace('class="', f'class="{name} ', 1)
    return f'class="{name}" {attributes}'


def double(app, pagename, templatename, context, doctree):
    context["body"] = both(context.get("body", ""))


def write(app, error):
    folder = Path(app.outdir) / "_images"
    for path in () if error else folder.glob("*.svg"):
        if not path.name.endswith(".dark.svg"):
            text = dark(path.read_text(encoding="utf-8"))
            path.with_suffix(".dark.svg").write_text(text, encoding="utf-8")


def setup(app):
    app.connect("html-page-context", double)
    app.connect("build-finished", write)
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
