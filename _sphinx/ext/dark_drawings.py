"""A second form of every drawing, for a dark page: the same shapes on its ground.

Drawings keep to a few colours: a white ground, greys for words and lines on it, pale
tints of devices, and the devices' own colours with their inks. Only what lies on the
ground changes; a device has its colour on both pages, and words on it theirs.
"""

import re
from pathlib import Path

from narrow_drawings import for_phones

from d2l_ext.palette import SERIES_COLOURS, SERIES_ON_DARK

#: What is drawn on white, and what it is where the ground is dark.
DARK = {
    "#222": "#e8e8e8", "#333": "#e8e8e8", "#444": "#cfcfcf", "#555": "#c4c4c4",
    "#555555": "#c4c4c4", "#777777": "#a8a8a8", "#888": "#a0a0a0", "#999": "#8f8f8f",
    "#bbb": "#6a6f75", "#eee": "#2f3338", "#eeeeee": "#2f3338", "#f6f6f6": "#24282d",
    "#ddd": "#3d4248", "#dddddd": "#3d4248", "#DCEBF5": "#12324a",
    "#FBE9DC": "#4a2812", "#00704F": "#4fd0a5", "#B00020": "#ff7d88",
    **dict(zip(SERIES_COLOURS, SERIES_ON_DARK)),
}
#: The ground; a plate behind a word, on a device's colour or its hatch; and words in
#: device 0's colour, which is too dark for them.
GROUND, PLATE = '"#ffffff"', '"#fff"'
WORDS, LIGHTER = '"#0072B2"', '"#56B4E9"'
TAG = re.compile(r"<(\w+)\b[^>]*>(?=(?:\s*<(\w+))?)")
COLOUR = re.compile(r'\b(fill|stroke)="(#\w+)"')
PHONES = 'media="screen and (max-width: 600px)"'
IMAGE = re.compile(
    r'(<a [^>]*>)?<img ([^>]*src="([^"]*_images/(\w+)\.svg)"[^>]*?)\s*/?>(?(1)</a>)'
)


def dark(svg):
    """Return the drawing `svg`, a text, as it is shown on a dark page."""

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


def both(body, drawings):
    """Return the HTML `body` with each drawing twice, one for light pages, one for
    dark.

    `drawings`: name -> SVG. On a phone, most have a form of their own.
    """

    def pair(found):
        link, words, address, name = found.groups()
        # On a card, a drawing is a small picture of itself, not one to be read.
        is_read = name in drawings and 'alt=""' not in words
        has_narrow = is_read and for_phones(drawings, name)
        stem, images = address[: -len("svg")], []
        for end, page in (("", "only-light"), ("dark.", "only-dark")):
            attributes = words.replace(address, f"{stem}{end}svg")
            image = f"<img {_with_class(attributes, page)} />"
            if has_narrow:
                source = f'{PHONES} srcset="{stem}narrow.{end}svg"'
                image = f"<picture><source {source}>{image}</picture>"
            images.append(image)
        shown = "".join(images)
        return f"{link}{shown}</a>" if link else shown

    return IMAGE.sub(pair, body)


def _with_class(attributes, name):
    if 'class="' in attributes:
        return attributes.replace('class="', f'class="{name} ', 1)
    return f'class="{name}" {attributes}'


def double(app, pagename, templatename, context, doctree):
    context["body"] = both(context.get("body", ""), app.drawings)


def read(app):
    folder = Path(app.srcdir) / "chapters" / "img"
    app.drawings = {p.stem: p.read_text(encoding="utf-8") for p in folder.glob("*.svg")}


def write(app, error):
    folder = Path(app.outdir) / "_images"
    for path in () if error else folder.glob("*.svg"):
        if "." not in path.stem:
            svg = path.read_text(encoding="utf-8")
            forms = {"": svg}
            if path.stem in app.drawings:
                forms[".narrow"] = for_phones(app.drawings, path.stem)
            for name, form in forms.items():
                if form:
                    for end, text in (("", form), (".dark", dark(form))):
                        file = folder / f"{path.stem}{name}{end}.svg"
                        file.write_text(text, encoding="utf-8")


def setup(app):
    app.connect("builder-inited", read)
    app.connect("html-page-context", double)
    app.connect("build-finished", write)
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
