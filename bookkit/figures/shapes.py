"""What the figures draw with, as SVG. Whole numbers only, so that all twins agree.

Every function has its twin of the same name in `frame.js`. The drawing is 700 units
wide, and `d["name"]` is the figure's id, which the hatches need. `state` is `'todo'`,
`'now'`, `'done'` or `''`, and says how a shape looks at this moment.
"""

from d2l_ext.palette import colour, ink


def text(x, y, words, anchor="middle", size=11, state=""):
    """`words` at a point, whose `anchor` is `'start'`, `'middle'` or `'end'`."""
    return (
        f'<text class="{state}" x="{x}" y="{y}" text-anchor="{anchor}" '
        f'font-size="{size}">{words}</text>'
    )


def ground(x, y, width, height):
    """A faint rectangle: where work could be, and none is."""
    return (
        f'<rect class="ground" x="{x}" y="{y}" width="{width}" height="{height}" '
        'rx="2"/>'
    )


def swatch(device, box):
    """A rectangle of a device's colour. `box`: x, y, width and height."""
    x, y, width, height = box
    return (
        f'<rect class="swatch" x="{x}" y="{y}" width="{width}" height="{height}" '
        f'fill="{colour(device)}"/>'
    )


def work(d, device, kind, box, label="", state=""):
    """Work of a device: a box of its colour, with the hatch of its kind and a label.

    `box`: x, y, width and height. `kind`: `'forward'`, `'backward'`, `'update'` or
    `'copy'`. The label has a rim of the box's colour, so that no hatch runs into it.
    """
    x, y, width, height = box
    at = f'x="{x}" y="{y}" width="{width}" height="{height}" rx="2"'
    fill, hatch, rim = colour(device), "", ""
    if kind != "forward":
        hatch = f'<rect {at} fill="url(#{d["name"]}-{kind})"/>'
        wide = min(6, 2 + width // 9)
        rim = f' stroke="{fill}" stroke-width="{wide}" paint-order="stroke"'
    return (
        f'<g class="work {state}"><rect {at} fill="{fill}"/>{hatch}'
        f'<text x="{x + width // 2}" y="{y + height // 2 + 4}" text-anchor="middle" '
        f'font-size="{11 if width > 15 else 8}" fill="{ink(device)}"{rim}>'
        f"{label}</text></g>"
    )


def arrow(d, start, end, state=""):
    """A message: a line from the point `start` to the point `end`, with a tip."""
    return (
        f'<path class="arrow {state}" d="M{start[0]} {start[1]}L{end[0]} {end[1]}" '
        f'marker-end="url(#{d["name"]}-tip)"/>'
    )


def number(n):
    """A whole number with its thousands apart: 516272 -> 516,272."""
    return f"{n:,}"


def ratio(part, whole, digits=0):
    """`part` / `whole` of whole numbers, with `digits` decimals, halves rounded up."""
    scaled = (2 * part * 10**digits + whole) // (2 * whole)
    if not digits:
        return str(scaled)
    return f"{scaled // 10**digits}.{scaled % 10**digits:0{digits}d}"
