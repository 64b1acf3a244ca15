"""The operators that MXNet takes from a file are those that it compiles; what is hidden
from one module is there for others."""

import json
import marshal
import subprocess
import sys
from pathlib import Path

import pytest

TOOLS = Path(__file__).parents[2] / "tools"
IMPORT = """
import sys
sys.path.insert(0, {tools!r})
import quick_imports
quick_imports.FILE = {file!r}
"""
#: All that MXNet compiled: names, bytecode, constants, documentation. An address is
#: told from other numbers by its size; two are compared with those that MXNet gives.
DESCRIBE = """
import ctypes, hashlib, json
import d2l_ext, mxnet
from mxnet.base import _LIB, OpHandle

found, relu = {}, OpHandle()
def shown(code):
    return [code.co_name, code.co_varnames, code.co_code.hex(), *(
        "an address" if type(c) is int and c > 1 << 32 else repr(c)
        for c in code.co_consts)]
for name, module in sorted(sys.modules.items()):
    if name.startswith("mxnet"):
        for key, value in vars(module).items():
            code = getattr(value, "__code__", None)
            if code and code.co_filename == "<string>":
                found[f"{name}.{key}"] = [
                    *shown(code), value.__doc__, value.__module__,
                    repr(value.__defaults__)]
_LIB.NNGetOpHandle(b"relu", ctypes.byref(relu))
print(json.dumps({
    "functions": len(found),
    "same": hashlib.sha256(json.dumps(found).encode()).hexdigest(),
    "addresses": [relu.value in f.__code__.co_consts
                  for f in (mxnet.nd.relu, mxnet.sym.relu)],
    "left": len(quick_imports.OPERATORS.kept),
    "compiled": compiled}))
"""
#: Counts what is compiled all the same.
COUNT = """
compiled = 0
def count(*given):
    global compiled
    compiled += 1
    return compile(*given)
quick_imports.compile = count
"""


def run(code, file):
    code = IMPORT.format(tools=str(TOOLS), file=str(file)) + code
    return subprocess.run([sys.executable, "-c", code], check=True,
                          capture_output=True, text=True).stdout


@pytest.fixture(scope="module")
def file(tmp_path_factory):
    file = tmp_path_factory.mktemp("kept") / "operators.bin"
    run("quick_imports.keep()", file)
    return file


@pytest.fixture(scope="module")
def as_ever(file):
    return json.loads(run(COUNT + DESCRIBE, file.with_name("none")))


@pytest.fixture(scope="module")
def kept(file):
    return json.loads(run(COUNT + DESCRIBE, file))


def test_the_functions_from_the_file_are_those_that_mxnet_compiles(kept, as_ever):
    assert as_ever["functions"] > 2000
    assert kept["same"] == as_ever["same"]
    assert kept["addresses"] == as_ever["addresses"] == [True, True]


def test_nothing_is_compiled_with_the_file_and_nothing_of_it_stays_in_memory(kept):
    assert (kept["compiled"], kept["left"]) == (0, 0)


def test_a_file_that_was_cut_off_is_none(file, as_ever):
    cut = file.with_name("cut")
    cut.write_bytes(file.read_bytes()[:-1000])
    assert json.loads(run(COUNT + DESCRIBE, cut)) == as_ever


def test_an_operator_that_the_file_lacks_is_compiled(file, as_ever):
    kept = marshal.loads(file.read_bytes())
    text = next(text for text in kept if text.strip().startswith("def relu("))
    codes = kept.pop(text)
    less = file.with_name("less")
    less.write_bytes(marshal.dumps(kept))
    found = json.loads(run(COUNT + DESCRIBE, less))
    assert found == {**as_ever, "compiled": len(codes)}


HIDDEN = """
import sys, d2l_ext, mxnet, nbformat
assert not {"pandas", "sklearn", "sklearn.base", "scipy.stats",
            "rfc3987_syntax"} & sys.modules.keys()
import scipy.stats, sklearn.base, rfc3987_syntax
"""
THERE = """
import sys, scipy.stats, sklearn.base, d2l_ext, mxnet
assert mxnet.test_utils.ss is scipy.stats
assert issubclass(mxnet.model.FeedForward, sklearn.base.BaseEstimator)
"""


@pytest.mark.parametrize("code", [HIDDEN, THERE])
def test_what_is_hidden_from_one_module_is_there_for_others(file, code):
    run(code, file)
