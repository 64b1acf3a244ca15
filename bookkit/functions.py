"""Which functions of the library some code calls, and a digest of what each does.

They are found in the source, by name; nothing is imported. A name in the code leads to
its definition, and that to the names that it uses. Of a class that is named, the
methods count whose names occur anywhere on the way.

A digest is one of the syntax tree without comments, docstrings, the names of most local
variables and of private attributes, and the texts of errors that are raised: nbval
compares them where a chapter prints them. What a function calls enters with its content
instead of its name, so that a different name, or a different file, is not a change.
Four changes are not noticed: one private attribute is read instead of another; two
functions change places that differ only in what they call; a foreign function replaces
another one under the same name, since the imports at the top of a file of the library
do not enter; and code changes to which no name leads because it is found at run time,
as `allreduce.algorithm.algorithms` finds schedules.
"""

import ast
import copy
import hashlib
import re
from functools import lru_cache
from pathlib import Path

FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)
DEFINITIONS = (*FUNCTIONS, ast.ClassDef)


def digest(text):
    """Return the digest of `text`: twelve hexadecimal digits."""
    return hashlib.sha256(text.encode()).hexdigest()[:12]


def of_text(text):
    """Return a digest of the code of a program or listing, a text that stands alone."""
    tree = ast.parse(text)
    tree.body = _without_docstring(tree.body)
    return digest(Form([tree], {}, Library(".", ())).text(str))


class Module:
    """A file of the library: what it defines, and what its names stand for."""

    def __init__(self, name, path):
        self.name = name
        tree = ast.parse(path.read_text("utf-8"))
        is_package = path.name == "__init__.py"
        self.package = name if is_package else name.rpartition(".")[0]
        #: {local name: what it stands for, with dots}
        self.imports = imports(tree, self.package) | lazy(tree, name)
        #: {name: nodes}, of a method "Class.method", of what else importing does "".
        self.units = {"": []}
        for node in tree.body:
            for key, part in _units(node):
                self.units.setdefault(key, []).append(part)


def imports(tree, package=""):
    """Return {local name: what it stands for} of all imports; top ones first."""
    found = {}
    for node in [*ast.walk(tree), *tree.body]:
        if isinstance(node, ast.Import):
            for alias in node.names:
                whole = alias.name if alias.asname else alias.name.split(".")[0]
                found[alias.asname or whole] = whole
        elif isinstance(node, ast.ImportFrom):
            above = package.split(".")
            above = above[: len(above) - node.level + 1] if node.level else []
            base = ".".join([*above, *([node.module] if node.module else [])])
            for alias in node.names:
                found[alias.asname or alias.name] = f"{base}.{alias.name}"
    return found


def lazy(tree, name):
    """Return the names that `lazy.names` exports: {name: the full name behind it}."""
    found = {}
    for call in ast.walk(tree):
        if isinstance(call, ast.Call) and ast.unparse(call.func) == "lazy.names":
            given = {word.arg: word.value for word in call.keywords if word.arg}
            for word in call.keywords:
                if word.arg is None:
                    given.update(zip(map(ast.literal_eval, word.value.keys),
                                     word.value.values))
            for file, names in given.items():
                for each in ast.literal_eval(names).split():
                    found[each] = f"{name}.{file}.{each}"
    return found


def _units(node):
    """Yield (name, node) for each part of a statement at the top of a file."""
    if isinstance(node, ast.ClassDef):
        methods = [each for each in node.body if isinstance(each, FUNCTIONS)]
        head = copy.copy(node)
        head.body = [each for each in node.body if each not in methods]
        yield node.name, head
        for each in methods:
            yield f"{node.name}.{each.name}", each
    elif isinstance(node, FUNCTIONS):
        yield node.name, node
    elif isinstance(node, (ast.Assign, ast.AnnAssign, ast.AugAssign)):
        targets = getattr(node, "targets", None) or [node.target]
        stored = [n for target in targets for n in ast.walk(target) if _is_stored(n)]
        for name in [n.id for n in stored] or [""]:
            yield name, node
    elif not (isinstance(node, (ast.Import, ast.ImportFrom)) or _is_main(node)
              or isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)):
        yield "", node


def _is_stored(node):
    return isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)


def _is_main(node):
    return isinstance(node, ast.If) and "__name__" in ast.unparse(node.test)


class Library:
    """The code of `packages` below the folder `root`.

    A key is a pair of texts: a module, and the name of a unit in it.
    """

    def __init__(self, root, packages):
        self.root, self.packages = Path(root), tuple(packages)
        words = "|".join(map(re.escape, self.packages))
        #: A module that is run, by its name alone or as `python -m` has it.
        alone = rf"^((?:{words})(?:\.\w+)+)$"
        self.command = re.compile(alone)
        self.command_line = re.compile(rf"-m ((?:{words})(?:\.\w+)*)|{alone}")
        self.module = lru_cache(maxsize=None)(self._module)
        self.form = lru_cache(maxsize=None)(self._form)
        self.digest = lru_cache(maxsize=None)(self._digest)
        self.own_digest = lru_cache(maxsize=None)(self._own_digest)

    def _module(self, name):
        """Return the `Module` of this name; None if there is none."""
        if name.split(".")[0] not in self.packages:
            return None
        path = self.root / name.replace(".", "/")
        for file in (path.with_suffix(".py"), path / "__init__.py"):
            if file.is_file():
                return Module(name, file)
        return None

    def find(self, dotted):
        """Return what a name stands for: ((module, unit), the words left); None if not
        ours.

        The unit is None where the name is that of a module.
        """
        words = dotted.split(".")
        for i in range(len(words), 0, -1):
            module = self.module(".".join(words[:i]))
            if module is None:
                continue
            left = words[i:]
            if not left:
                return (module.name, None), left
            if left[0] in module.units:
                return (module.name, left[0]), left[1:]
            if left[0] in module.imports:
                return self.find(".".join([module.imports[left[0]], *left[1:]]))
            return (module.name, None), left
        return None

    def _form(self, key):
        """Return the `Form` of a unit."""
        module = self.module(key[0])
        names = {name: f"{module.name}.{name}" for name in module.units if name}
        return Form(module.units[key[1]], names | module.imports, self, module)

    def _digest(self, key):
        """Return the digest of a unit, with the contents of the units that it names."""
        return digest(self.form(key).text(self.own_digest))

    def _own_digest(self, key):
        return digest(self.form(key).text(lambda named: ""))

    def reached(self, trees):
        """Return {module: digest} of all that the code in `trees` calls."""
        found = {}
        for key in self._reached(trees):
            found.setdefault(key[0], []).append(self.digest(key))
        return {name: digest(" ".join(sorted(found[name]))) for name in sorted(found)}

    def behind(self, home):
        """Return a digest of the function `home`, MODULE:FUNCTION, and of all that it
        calls or starts; "" if there is no such function.

        The names of its modules do not count.
        """
        module, _, name = home.partition(":")
        if not self.module(module) or name not in self.module(module).units:
            return ""
        called = ast.parse(f"from {module} import {name}\n{name}()")
        return digest(" ".join(sorted(map(self.digest, self._reached([called])))))

    def _reached(self, trees):
        names = {}
        for tree in trees:
            names.update(imports(tree))
        forms = [Form([tree], names, self) for tree in trees]
        waiting = {each for name in names.values() if (found := self.find(name))
                   for each in self._around(found[0][0])}
        seen, attributes = set(), set()
        # A method is reached when its name is, which a form found later may do.
        while forms or waiting:
            forms += [self.form(key) for key in waiting]
            seen |= waiting
            for form in forms:
                attributes |= form.attributes
            waiting = {each for form in forms for each in form.found}
            waiting |= {each for key in waiting for each in self._around(key[0])}
            waiting |= {each for key in seen | waiting
                        for each in self._methods(*key, attributes)}
            waiting -= seen
            forms = []
        return seen

    def _around(self, name):
        """Return the code that importing a module runs, that of its packages, too."""
        words = name.split(".")
        above = [".".join(words[: i + 1]) for i in range(len(words))]
        return {(each, "") for each in above
                if (module := self.module(each)) and module.units[""]}

    def _methods(self, name, unit, attributes):
        found = set()
        for key in self.module(name).units:
            of, _, method = key.rpartition(".")
            if of and of == unit and (method in attributes or method[:2] == "__"):
                found.add((name, key))
        return found


class Form:
    """Code without the parts that change no result, and the units that it names.

    `found`: keys of units. `attributes`: names behind a dot, of methods among others.
    """

    def __init__(self, nodes, names, library, module=None):
        self.names, self.library, self.module = names, library, module
        self.found, self.attributes = set(), set()
        self.parts, self.private = [], {}  # texts, and keys instead of names
        for node in nodes:
            is_function = isinstance(node, FUNCTIONS)
            self.given = arguments_of(node) if is_function else set()
            self.local = locals_of(node, self.given) if is_function else {}
            if module:  # the name under which others know it
                self.local = dict.fromkeys(_defined(node), "") | self.local
            self._write(node)

    def text(self, content):
        """Return the code as text, `content(key)` for each unit that it names."""
        return "".join(part if isinstance(part, str) else content(part)
                       for part in self.parts)

    def _write(self, node):
        if isinstance(node, list):
            for each in node:
                self._write(each)
            self.parts.append("]")
        elif not isinstance(node, ast.AST):
            self.parts.append(f"{node!r},")
        elif isinstance(node, (ast.Name, ast.Attribute)):
            self._write_name(node)
        elif isinstance(node, ast.Raise):
            self._write_fields(WithoutTexts().visit(copy.deepcopy(node)))
        elif not self._is_import_of_ours(node):
            self._write_fields(node)

    def _write_fields(self, node):
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            self._find_commands(node.value)
        self.parts.append(f"{type(node).__name__}(")
        for field, value in ast.iter_fields(node):
            if isinstance(node, DEFINITIONS) and field == "name":
                value = self.local.get(value, value)
            if isinstance(node, DEFINITIONS) and field == "body":
                value = _without_docstring(value)
            if value is not None and value != []:
                self.parts.append(f"{field}=")
                self._write(value)
        self.parts.append(")")

    def _is_import_of_ours(self, node):
        """Return whether `node` imports only our modules: they are found where used."""
        if isinstance(node, ast.ImportFrom):
            first = (node.module or "").split(".")[0]
            return bool(node.level) or first in self.library.packages
        if isinstance(node, ast.Import):
            firsts = {alias.name.split(".")[0] for alias in node.names}
            return firsts <= set(self.library.packages)
        return False

    def _write_name(self, node):
        first, *others = _words(node) or [None]
        if first in self.names and first not in self.local and first not in self.given:
            found = self.library.find(".".join([self.names[first], *others]))
            if found:
                self._write_found(*found)
                return
        if isinstance(node, ast.Name):
            self.parts.append(f"{self.local.get(first, first)} ")
            return
        self._write(node.value)
        self.attributes.add(node.attr)
        self._write_attribute(node.attr)

    def _write_found(self, key, left):
        self.found |= {key} if key[1] is not None else self._whole(key[0])
        self.attributes.update(left)
        self.parts += [key if key[1] is not None else "a module", f".{left} "]

    def _write_attribute(self, name):
        """Write a private method by its content, another private name by a number."""
        if self.module and name[0] == "_" and name[:2] != "__":
            keys = [key for key in self.module.units if key.endswith(f".{name}")]
            self.parts += [(self.module.name, key) for key in keys]
            if not keys:
                number = self.private.setdefault(name, len(self.private))
                self.parts.append(f"._{number} ")
        else:
            self.parts.append(f".{name} ")

    def _whole(self, name):
        """Return keys of all units of a module that is passed on, or a command."""
        named = {(name, unit) for unit in self.library.module(name).units if unit}
        return named | self.library._around(name)

    def _find_commands(self, text):
        library, names = self.library, []
        asked = library.command if self.module else library.command_line
        for match in asked.finditer(text):
            name = next(filter(None, match.groups()))
            names += [name, f"{name}.__main__"]
        if self.module and text.endswith(".py"):  # a program in the same folder
            names.append(f"{self.module.package}.{text[:-3]}")
        for each in filter(library.module, names):
            self.found |= self._whole(each)


class WithoutTexts(ast.NodeTransformer):
    """Empty the strings in an expression, with everything formatted into them."""

    def visit_JoinedStr(self, node):
        return ast.Constant("")

    def visit_Constant(self, node):
        return ast.Constant("") if isinstance(node.value, str) else node


def _words(node):
    """Return the words of a name with dots: `a.b.c`; None for another expression."""
    if isinstance(node, ast.Name):
        return [node.id]
    if isinstance(node, ast.Attribute):
        words = _words(node.value)
        return words and [*words, node.attr]
    return None


def _without_docstring(body):
    first = body[0] if body else None
    is_text = isinstance(first, ast.Expr) and isinstance(first.value, ast.Constant)
    return body[1:] if is_text and isinstance(first.value.value, str) else body


def _defined(node):
    """Return the names that a statement at the top of a file defines."""
    return [name for name, _ in _units(node) if name]


def arguments_of(function):
    """Return the names of a function's arguments, and of inner functions'."""
    return {node.arg for node in ast.walk(function) if isinstance(node, ast.arg)}


def locals_of(function, arguments):
    """Return {name: a number} for each of a function's variables but arguments."""
    shared, found = set(arguments), {}
    for node in ast.walk(function):
        if isinstance(node, ast.Global):
            shared.update(node.names)
    for node in ast.walk(function):
        if _is_stored(node):
            name = node.id
        elif isinstance(node, DEFINITIONS) and node is not function:
            name = node.name
        else:
            continue
        if name not in shared:
            found.setdefault(name, f"·{len(found)}")
    return found
