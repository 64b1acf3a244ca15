"""Show the library's source inside a chapter, folded, from the library itself."""

import ast
import inspect
import textwrap
from importlib.util import find_spec
from pathlib import Path

from IPython.display import Markdown

ROOT = Path(__file__).resolve().parents[1]


def show(*objects):
    """Show the source of functions or classes, folded, without their docstrings.

    Code that a chapter shows in this way is always the library's.
    """
    modules = dict.fromkeys(inspect.getmodule(obj).__name__ for obj in objects)
    names = [obj.__name__ for obj in objects]
    return _folded(names, modules, [inspect.getsource(obj) for obj in objects])


def show_from(module, *names):
    """Like `show`, for a module that cannot be imported here; its file is read.

    `module`: such as `"benchmarks.scale.rosetta.torch_steps"`, which needs PyTorch.
    Raises `ValueError` for a name that is no function or class of the module.
    """
    text = Path(find_spec(module).origin).read_text(encoding="utf-8")
    defined = {node.name: node for node in ast.parse(text).body
               if hasattr(node, "decorator_list")}
    missing = [name for name in names if name not in defined]
    if missing:
        raise ValueError(f"{module} has no function or class {', '.join(missing)}")
    parts = [_segment(text, defined[name]) for name in names]
    return _folded(names, [module], parts)


def _segment(text, node):
    begin = min(n.lineno for n in [node, *node.decorator_list])
    return "\n".join(text.splitlines()[begin - 1 : node.end_lineno])


def _folded(names, modules, parts):
    files = [Path(find_spec(module).origin) for module in modules]
    files = [f.relative_to(ROOT) if ROOT in f.parents else f.name for f in files]
    what, where = (", ".join(f"<code>{x}</code>" for x in xs) for xs in (names, files))
    source = "\n\n".join(map(without_docstrings, parts))
    return Markdown(
        f"<details>\n<summary>Library source: {what} in {where}</summary>\n\n"
        f"```python\n{source}\n```\n\n</details>"
    )


def without_docstrings(source):
    """Return a definition without its docstrings and its indentation."""
    lines = textwrap.dedent(source).rstrip().splitlines()
    kinds = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)
    nodes = [n for n in ast.walk(ast.parse("\n".join(lines))) if isinstance(n, kinds)]
    for node in sorted(nodes, key=lambda node: -node.lineno):
        if ast.get_docstring(node) is not None and len(node.body) > 1:
            begin, end = node.body[0].lineno - 1, node.body[0].end_lineno
            del lines[begin : end + (not lines[end].strip())]
    return "\n".join(lines)
