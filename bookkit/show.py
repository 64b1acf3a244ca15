"""Shows a function of the library inside a chapter, from the library itself."""

import ast
import inspect
from importlib.util import find_spec
from pathlib import Path

from IPython.display import Markdown


def show(*objects):
    """The source of functions or classes, as one highlighted block of code.

    A chapter that shows code this way cannot fall behind the library.
    """
    source = "\n\n".join(inspect.getsource(obj).rstrip() for obj in objects)
    return Markdown(f"```python\n{source}\n```")


def show_from(module, *names):
    """The same for a module that cannot be imported here, read from its file.

    `module`: as in `"benchmarks.rosetta.torch_steps"`, which needs PyTorch. Raises
    `ValueError` for a name that the module does not define.
    """
    text = Path(find_spec(module).origin).read_text(encoding="utf-8")
    defined = {getattr(node, "name", None): node for node in ast.parse(text).body}
    missing = [name for name in names if name not in defined]
    if missing:
        raise ValueError(f"{module} defines no {', '.join(missing)}")
    parts = (ast.get_source_segment(text, defined[name]) for name in names)
    return Markdown("```python\n" + "\n\n".join(parts) + "\n```")
