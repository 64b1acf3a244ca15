"""Cells of chapters that a page can run, after the statements that they need.

A cell tagged `lab` has an editor in its page. It begins with the statements of earlier
cells that bind the names which the cell uses, and so runs alone.
"""

import ast
import builtins
import symtable
from itertools import groupby

import nbformat

TAG = "lab"


def editors(path):
    """Return the initial texts of a notebook's editors, in their cells' order."""
    cells = nbformat.read(path, as_version=4).cells
    cells = [cell for cell in cells if cell.cell_type == "code"]
    sources = [_plain(cell.source) for cell in cells]
    return [alone(sources[: i + 1]) for i, cell in enumerate(cells)
            if TAG in cell.metadata.get("tags", [])]


def alone(sources):
    """Return the last of `sources`, after the others' statements that it needs."""
    *earlier, cell = sources
    statements = [(s, source) for source in earlier for s in ast.parse(source).body]
    taken, before = {}, None
    while taken.keys() != before:  # a function may need what is bound after it
        before = {*taken}
        wanted = _needs(ast.parse(cell)).union(
            *(_uses(statements[i][0])[1] for i in taken)) - {*dir(builtins)}
        for i, (statement, _) in reversed([*enumerate(statements)]):
            found = _binds(statement) & wanted
            if found:
                taken[i] = taken.get(i, set()) | found
                wanted -= found
                wanted |= _needs(ast.Module([statement], []))
    taken = [_text(*statements[i], taken[i]) for i in sorted(taken)]
    imports = [text for text in taken if text.startswith(("import ", "from "))]
    others = _parted([text for text in taken if text not in imports])
    parts = ["\n".join(imports), *others, cell]
    return "\n\n\n".join(filter(None, parts)) + "\n"


def _plain(source):
    """Return the cell without magics and shell commands."""
    return "\n".join(x for x in source.splitlines() if not x.startswith(("%", "!")))


def _parted(texts):
    """Return the texts, grouped: definitions, and lines between: a list."""
    return ["\n\n\n".join(group) if defines else "\n".join(group)
            for defines, group in groupby(texts, key=_defines)]


def _defines(text):
    return text.startswith(("def ", "class ", "@"))


def _needs(tree):
    """Return the names that must be defined before the statements of `tree` run."""
    needed, bound, late = set(), set(), set()
    for statement in _in_order(tree.body):
        used, later = _uses(statement)
        needed |= used - bound
        late |= later
        bound |= _binds(statement)
    return (needed | late - bound) - {*dir(builtins)}


def _in_order(statements):
    """Yield the parts of loops and other blocks, in the order in which they run."""
    for s in statements:
        if not isinstance(s, (ast.For, ast.While, ast.If, ast.With, ast.Try)):
            yield s
            continue
        for before in [getattr(s, "iter", None), getattr(s, "test", None),
                       *(item.context_expr for item in getattr(s, "items", []))]:
            yield from [ast.Expr(before)] if before else []
        for to in [getattr(s, "target", None),
                   *(item.optional_vars for item in getattr(s, "items", []))]:
            yield from [ast.Assign([to], ast.Constant(0), lineno=0)] if to else []
        yield from _in_order(s.body)
        for handler in getattr(s, "handlers", []):
            yield from [ast.Expr(handler.type)] if handler.type else []
            yield from _in_order(handler.body)
        yield from _in_order([*getattr(s, "orelse", []), *getattr(s, "finalbody", [])])


def _uses(statement):
    """Return the global names a statement reads at once, and in its functions."""
    table = _symbols(statement)
    at_once = {s.get_name() for s in table.get_symbols() if s.is_referenced()}
    if isinstance(statement, ast.AugAssign):  # to `symtable`, `k += 1` reads no `k`
        at_once |= {n.id for n in ast.walk(statement.target) if isinstance(n, ast.Name)}
    inner, waiting = set(), [(child, at_once) for child in table.get_children()]
    while waiting:
        table, names = waiting.pop()
        names = names if _runs_at_once(table) else inner
        names |= {s.get_name() for s in table.get_symbols() if s.is_global()}
        waiting += [(child, names) for child in table.get_children()]
    return at_once, inner


def _runs_at_once(table):
    """Return whether this is the body of a class or a comprehension."""
    return isinstance(table, symtable.Class) or table.get_name() == "genexpr"


def _binds(statement):
    return {s.get_name() for s in _symbols(statement).get_symbols()
            if s.is_assigned() or s.is_imported() or s.is_namespace()}


def _symbols(statement):
    """Return the statement's table of symbols, with a table for each comprehension."""
    tree = _Generators().visit(ast.parse(ast.unparse(statement)))
    return symtable.symtable(ast.unparse(tree), "cell", "exec")


class _Generators(ast.NodeTransformer):
    """Makes generators of comprehensions, which have no table from Python 3.12 on."""

    def visit_ListComp(self, node):
        self.generic_visit(node)
        return ast.GeneratorExp(node.elt, node.generators)

    visit_SetComp = visit_ListComp

    def visit_DictComp(self, node):
        self.generic_visit(node)
        return ast.GeneratorExp(ast.List([node.key, node.value]), node.generators)


def _text(statement, source, names):
    """Return the source of a statement; of an import, only with the wanted names."""
    if isinstance(statement, (ast.Import, ast.ImportFrom)):
        kept = [n for n in statement.names
                if (n.asname or n.name.split(".")[0]) in names]
        return ast.unparse(type(statement)(**{**vars(statement), "names": kept}))
    first = min([statement.lineno, *(d.lineno for d in getattr(
        statement, "decorator_list", []))])
    return "\n".join(source.splitlines()[first - 1 : statement.end_lineno])
