"""On paper and on slides, one framework: MXNet, or the one that FRAMEWORK names."""

import os

NAMES = ("mxnet", "torch", "jax")


def keep(article, name=None):
    """Take the tabs of all other frameworks out of `article`; `all` keeps all.

    `name`: default the environment's FRAMEWORK, or `mxnet`. Raises `ValueError` for a
    framework that has no tabs.
    """
    name = name or os.environ.get("FRAMEWORK") or NAMES[0]
    if name not in (*NAMES, "all"):
        raise ValueError(f"FRAMEWORK={name}: choose one of {', '.join(NAMES)}, or all")
    for panel in article.select(".framework") if name != "all" else ():
        if f"framework-{name}" not in panel["class"]:
            panel.decompose()
