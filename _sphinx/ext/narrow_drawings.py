"""A form of a drawing for phones: whole in their column, with words of 10 px or more.

A drawing that stands in parts side by side says so on its `<svg>`: `data-rows`, with a
`;` between rows, and in each the range of x that stands there, or several. What cannot
be cut so, as a timeline cannot, is drawn again in `NAME.narrow.svg`, `PHONE` units
wide. A drawing whose words are large enough as it is has one form.
"""

import re

HEAD = re.compile(r'<svg ([^>]*?)viewBox="0 0 ([\d.]+) ([\d.]+)"([^>]*)>')
ROWS = re.compile(r' data-rows="([^"]*)"')
GROUND = re.compile(r'<rect width="[\d.]+" height="[\d.]+"[^>]*fill="#ffffff"[^>]*/>')
SIZE = re.compile(r'font-size="([\d.]+)"')
#: Units of a drawing that a phone shows without making it smaller.
PHONE = 350
#: Pixels of a phone's column, and of the smallest word that is still read.
COLUMN, WORD = 342, 10


def rows_of(svg):
    """Return the rows of a drawing, each a list of ranges (begin, end), or None."""
    found = ROWS.search(svg)
    return found and [
        [tuple(map(float, part.split("-"))) for part in row.split()]
        for row in found[1].split(";")
    ]


def narrow(svg):
    """Return drawing `svg`, a text, with its rows stacked; None without rows."""
    rows = rows_of(svg)
    if not rows:
        return None
    before, _, height, after = HEAD.search(svg).groups()
    wide = max(PHONE, *(sum(b - a for a, b in row) for row in rows))
    (title,) = re.findall(r"<title>.*?</title>", svg, re.DOTALL)
    content = GROUND.sub("", svg[HEAD.search(svg).end() :], count=1)
    content = content.replace(title, "").replace("</svg>", "")
    pieces = []
    for n, row in enumerate(rows):
        x = (wide - sum(b - a for a, b in row)) / 2
        for a, b in row:
            pieces.append(
                f'<svg x="{x:g}" y="{n * float(height):g}" width="{b - a:g}" '
                f'height="{height}" viewBox="{a:g} 0 {b - a:g} {height}">'
                '<use href="#whole"/></svg>'
            )
            x += b - a
    high = len(rows) * float(height)
    head = f'<svg {before}viewBox="0 0 {wide:g} {high:g}"{ROWS.sub("", after)}>'
    return (
        f'{head}{title}<rect width="{wide:g}" height="{high:g}" rx="6" fill="#ffffff"/>'
        f'<defs><g id="whole">{content}</g></defs>{"".join(pieces)}</svg>'
    )


def for_phones(drawings, name):
    """Return the form of a drawing for phones; None if it has one form for all.

    `drawings`: name -> SVG.
    """
    return drawings.get(f"{name}.narrow") or narrow(drawings[name])


def smallest(svg, width):
    """Return the pixels of the smallest word of a drawing `width` pixels wide."""
    return min(map(float, SIZE.findall(svg))) * width / float(HEAD.search(svg)[2])
