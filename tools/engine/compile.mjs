// Compiles Python's library for the editors in the pages, without its docstrings.
//
//     node compile.mjs python_stdlib.zip compiled.zip
//
// By Pyodide itself, because bytecode is for one release of CPython alone.
import { readFileSync, writeFileSync } from "node:fs";
import { loadPyodide } from "pyodide";

const [from, to] = process.argv.slice(2);
const python = await loadPyodide();
python.FS.writeFile("/from.zip", readFileSync(from));
python.runPython(`
import zipfile
from importlib._bootstrap_external import _code_to_hash_pyc
from importlib.util import source_hash

with zipfile.ZipFile("/from.zip") as sources, zipfile.ZipFile("/to.zip", "w") as compiled:
    for name in sorted(sources.namelist()):
        data = sources.read(name)
        if name.endswith(".py"):
            code = compile(data, name, "exec", dont_inherit=True, optimize=2)
            data = _code_to_hash_pyc(code, source_hash(data), checked=False)
            name += "c"
        compiled.writestr(zipfile.ZipInfo(name), data)
`);
writeFileSync(to, python.FS.readFile("/to.zip"));
