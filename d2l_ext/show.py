"""Shows a function of the library inside a chapter, from the library itself."""

import inspect

from IPython.display import Markdown


def show(*objects):
    """The source of functions or classes, as one highlighted block of code.

    A chapter that shows code this way cannot fall behind the library.
    """
    source = "\n\n".join(inspect.getsource(obj).rstrip() for obj in objects)
    return Markdown(f"```python\n{source}\n```")
