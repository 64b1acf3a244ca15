"""Colours and hatches, the same in timelines, drawings and interactive figures.

A device has a colour, and a kind of work has a hatch. Neither relies on colour alone:
devices are also named, and kinds differ without any colour.
"""

#: The colour of device i: Okabe and Ito's, safe for colour-blind readers, and a
#: grey. The first four stand out from a white and from a black page.
DEVICE_COLOURS = (
    "#0072B2", "#D55E00", "#009E73", "#CC79A7",
    "#E69F00", "#56B4E9", "#F0E442", "#999999",
)
#: Colours of other series: ways, settings, kinds of memory. After Paul Tol's muted
#: scheme; each differs from the page and from every device. On a dark page the first
#: three are lighter.
SERIES_COLOURS = ("#332288", "#959532", "#882255", "#7A4B2B", "#777777")
SERIES_ON_DARK = ("#a79bf2", "#c6c663", "#e686b3")
#: The colour of text on device i's colour.
INKS = ("#fff",) + ("#000",) * 7
#: Fills of large areas around devices 0 and 1; device 2's colour for text on white.
TINTS, SHADES = ("#DCEBF5", "#FBE9DC"), ("#00704F",)
#: Failures and losses.
ALARM = "#B00020"
#: The hatch of a kind of work: forward plain, backward striped, … Waiting has no bar.
KIND_HATCHES = {"forward": "", "backward": "////", "update": "xx", "copy": ".."}
#: The same hatches in SVG: a path or a dot, repeated every six units.
PATTERNS = {
    "backward": '<path d="M-1 7L7 -1M-1 1L1 -1M5 7L7 5" stroke="#fff"/>',
    "update": '<path d="M0 0L6 6M6 0L0 6" stroke="#fff"/>',
    "copy": '<circle cx="3" cy="3" r="1.2" fill="#fff"/>',
}


def colour(device):
    """Return the colour of device number `device`; the ninth repeats the first."""
    return DEVICE_COLOURS[device % len(DEVICE_COLOURS)]


def series(number):
    """Return the colour of series `number`, from 0, of a chart without devices."""
    return SERIES_COLOURS[number % len(SERIES_COLOURS)]


def bar(device, kind):
    """Return Matplotlib's options for work of `kind` on device number `device`: a dict.

        ax.broken_barh(spans, (device - 0.4, 0.8), **palette.bar(device, "forward"))

    Raises `ValueError` for a kind that is not in `KIND_HATCHES`.
    """
    if kind not in KIND_HATCHES:
        known = ", ".join(KIND_HATCHES)
        raise ValueError(f"unknown kind of work {kind!r}: choose one of {known}")
    return {"facecolor": colour(device), "hatch": KIND_HATCHES[kind],
            "edgecolor": "white", "linewidth": 0.2}


def patterns(name):
    """Return the hatches as SVG patterns: fill with `url(#NAME-backward)` etc."""
    return "".join(
        f'<pattern id="{name}-{kind}" width="6" height="6" '
        f'patternUnits="userSpaceOnUse">{shape}</pattern>'
        for kind, shape in PATTERNS.items()
    )
