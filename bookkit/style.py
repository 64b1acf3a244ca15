"""The style of measured figures, the same in all chapters.

    from bookkit import style
    style.use()

A figure then needs no settings of its own, except perhaps a size.
"""

from d2l_ext.palette import SERIES_COLOURS

#: matplotlib's settings that differ from its defaults, in inches and points.
SETTINGS = {
    "figure.figsize": (7, 2.8),  # as wide as a page's text
    "figure.autolayout": True,  # nothing is cut off at the edges
    "axes.titlesize": 10,
    "axes.titlelocation": "left",
    "axes.spines.top": False,
    "axes.spines.right": False,
    "legend.fontsize": 9,
    "legend.frameon": False,
    "hatch.linewidth": 0.8,
}


def use():
    """Use the book's style for figures of this process.

    In a notebook they get two dots per pixel, to be sharp on fine screens and paper.
    Source: matplotlib's style sheets, and its backend for notebooks.
    """
    import matplotlib.pyplot as plt
    from IPython import get_ipython
    from matplotlib_inline.backend_inline import set_matplotlib_formats

    plt.style.use({**SETTINGS, "axes.prop_cycle": plt.cycler(color=SERIES_COLOURS)})
    if get_ipython():
        set_matplotlib_formats("retina")
