"""`solution`: show the reference solution of an exercise, and check it.

    from exercisekit import solution

    swap_whole = solution("allreduce", 4)

Each solution is in the book only once: in the chapter's file, beside its judge.
"""

import ast
import inspect
import sys

from .answers import questions, tell
from .question import Task, says


def solution(chapter, exercise):
    """Show the source of a solution, print its verdict, and return the solution.

    It is no answer: the grade book gets no line.

    `chapter`, `exercise`: as for `check`; the exercise must ask for code. Raises
    `KeyError` for an exercise without a solution, and `AssertionError` if the judge
    rejects it.
    """
    asked = questions(chapter)
    if not isinstance(asked.get((chapter, exercise)), Task):
        known = [n for (_, n), each in asked.items() if isinstance(each, Task)]
        raise KeyError(f"{chapter!r}, exercise {exercise}: only {known} ask for code")
    task = asked[chapter, exercise]
    from IPython.display import display

    said = says(task, task.right)
    assert said.startswith("right."), said
    display(listing(task.right))
    tell(chapter, exercise, said)
    return task.right


def listing(function):
    """Return the source of `function`, with its name and file, as a page shows it."""
    from IPython.display import Markdown

    file = f"{function.__module__.replace('.', '/')}.py"
    title = f"Solution: <code>{function.__name__}</code> in <code>{file}</code>"
    return Markdown(f"<details open>\n<summary>{title}</summary>\n\n"
                    f"```python\n{source(function)}\n```\n\n</details>")


def source(function):
    """Return `function`'s definition, after the imports and definitions it uses."""
    text = inspect.getsource(sys.modules[function.__module__])
    parts = {}
    for node in ast.parse(text).body:
        for name in _defined(node):
            parts[name] = node
    wanted, waiting = set(), {function.__name__}
    while waiting:
        name = waiting.pop()
        wanted.add(name)
        names = {n.id for n in ast.walk(parts[name]) if isinstance(n, ast.Name)}
        waiting |= (names & parts.keys()) - wanted
    nodes = sorted({parts[name] for name in wanted}, key=lambda node: node.lineno)
    imports = [ast.unparse(node) for node in nodes if _is_import(node)]
    others = [_segment(text, node) for node in nodes if not _is_import(node)]
    return "\n\n\n".join(["\n".join(imports)] * bool(imports) + others)


def _segment(text, node):
    begin = min(n.lineno for n in [node, *getattr(node, "decorator_list", [])])
    return "\n".join(text.splitlines()[begin - 1 : node.end_lineno])


def _is_import(node):
    return isinstance(node, (ast.Import, ast.ImportFrom))


def _defined(node):
    """Return the names that a top-level statement defines."""
    if _is_import(node):
        return [(alias.asname or alias.name).split(".")[0] for alias in node.names]
    if isinstance(node, ast.Assign):
        return [n.id for target in node.targets for n in ast.walk(target)
                if isinstance(n, ast.Name)]
    return [node.name] if hasattr(node, "name") else []
