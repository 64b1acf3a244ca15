"""Colours as numbers, and how well one can be told from another."""


def rgb(colour):
    """'#0072B2' or '#fff' -> three numbers from 0 to 1."""
    digits = colour.lstrip("#")
    digits = digits if len(digits) == 6 else "".join(2 * c for c in digits)
    return [int(digits[i : i + 2], 16) / 255 for i in (0, 2, 4)]


def linear(colour):
    return [x / 12.92 if x <= 0.04045 else ((x + 0.055) / 1.055) ** 2.4
            for x in rgb(colour)]


def contrast(one, other):
    """The contrast ratio of WCAG 2, from 1 to 21."""
    bright, dark = sorted(
        (sum(w * x for w, x in zip((0.2126, 0.7152, 0.0722), linear(c))) + 0.05
         for c in (one, other)), reverse=True,
    )
    return bright / dark
