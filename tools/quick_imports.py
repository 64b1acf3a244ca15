"""What every process imports takes a fraction of the time: MXNet, and `jsonschema`.

`import mxnet` writes the text of two Python functions, one for arrays and one for
symbols, for each of some 1,200 operators, and compiles it: half of the import's time,
in each process of each job. `make venv` copies this module into the environment, whose
Python loads it at its start, and has it write the file:

    python -c "import quick_imports; quick_imports.keep()"

Code is taken from the file for the very text that it was compiled from. One part of a
text differs from process to process, the operator's address; it is put into the code.
For any other text, and without the file, MXNet compiles as ever.

Packages that are imported only if they are there, and take as long as all the rest, are
hidden. Without two of them, MXNet's `FeedForward` is no estimator of scikit-learn, its
quantization cannot calibrate by entropy, and its tests of random numbers are missing.
Without the third, `jsonschema`, which whatever reads a notebook imports, takes any text
for an IRI; what it would import compiles a grammar, for a second.
"""

import marshal
import os
import sys

#: The modules of MXNet that compile, and where a text of theirs has the address.
COMPILE = "mxnet.ndarray.register", "mxnet.symbol.register"
CALLS = "_imperative_invoke(", "_symbol_creator("
#: What a module imports only if it is there.
HIDDEN = {
    "jsonschema._format": "rfc3987_syntax",
    "mxnet.contrib.quantization": "scipy.stats",
    "mxnet.model": "sklearn.base",
    "mxnet.test_utils": "scipy.stats",
}
#: Stands for the address in a text that is kept.
ADDRESS = 0x0ADD_2E55_0ADD_2E55
#: Bytecode differs between versions of Python.
FILE = f"{os.path.splitext(__file__)[0]}.{sys.implementation.cache_tag}.bin"


class Operators:
    """Finds the modules above as Python does; they compile nothing that is kept, and
    do not find what is hidden from them."""

    def __init__(self):
        self.kept = None  # {text: its codes, one for each time that it is executed}

    def find_spec(self, name, path=None, target=None):
        if name not in COMPILE and name not in HIDDEN:
            return None
        from importlib.machinery import PathFinder

        spec = PathFinder.find_spec(name, path, target)
        if spec:
            run = spec.loader.exec_module
            if name in COMPILE:
                spec.loader.exec_module = lambda module: run(self.given(module))
            else:
                spec.loader.exec_module = lambda module: _without(
                    HIDDEN[name], run, module)
        return spec

    def given(self, module):
        """Return `module`, with an `exec` that compiles nothing twice."""

        def execute(text, space=None, names=None):
            call = next((call for call in CALLS if call in text), None)
            if call:
                before, _, after = text.partition(call)
                address, comma, after = after.partition(",")
                same = f"{before}{call}{ADDRESS}{comma}{after}"
                text = _with_address(self.code(same), int(address))
            space = module.__dict__ if space is None else space
            exec(text, space, names)  # noqa: S102  (MXNet's own)

        module.exec = execute
        return module

    def code(self, text):
        if self.kept is None:
            self.kept = _read()
        if text not in self.kept:
            return compile(text, "<string>", "exec")
        code = self.kept[text].pop()
        if not self.kept[text]:  # else it would stay in the memory of every process
            del self.kept[text]
        return code


def _without(package, run, module):
    """Run `module`, which fails to import `package` unless that is there already."""
    if package in sys.modules:
        return run(module)
    sys.modules[package] = None
    try:
        run(module)
    finally:
        del sys.modules[package]


def _with_address(code, address):
    def put(constant):
        if hasattr(constant, "co_consts"):  # the function within
            return _with_address(constant, address)
        return address if constant == ADDRESS else constant

    return code.replace(co_consts=tuple(map(put, code.co_consts)))


def _read():
    try:
        with open(FILE, "rb") as file:
            return marshal.loads(file.read())
    except (OSError, EOFError, TypeError, ValueError):  # none, or cut off
        return {}


def keep():
    """Import MXNet, and write the file."""
    kept = {}

    def code(text):
        kept.setdefault(text, []).append(compile(text, "<string>", "exec"))
        return kept[text][-1]

    OPERATORS.code = code
    import mxnet  # noqa: F401

    with open(f"{FILE}.new", "wb") as file:
        marshal.dump(kept, file)
    os.replace(f"{FILE}.new", FILE)


OPERATORS = Operators()
sys.meta_path.insert(0, OPERATORS)
