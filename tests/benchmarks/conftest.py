"""What tests of several benchmarks share: a run of a few steps."""

import io
import json
from contextlib import redirect_stdout
from importlib import import_module
from pathlib import Path

import jsonschema
import pytest

BENCHMARKS = Path(__file__).resolve().parents[2] / "benchmarks"


@pytest.fixture(scope="session")
def run(tmp_path_factory):
    """A function: runs a benchmark, in this process; its result, which follows the
    schema if there is one of its own, and what it printed."""

    def ran(name, *options, schema=None):
        output = tmp_path_factory.mktemp("bench") / "out" / "result.json"
        words = [*map(str, options), "--output", str(output)]
        with redirect_stdout(io.StringIO()) as printed:
            assert not import_module(name).main(words)
        result = json.loads(output.read_text())
        if schema:
            jsonschema.validate(result, json.loads((BENCHMARKS / schema).read_text()))
        return result, printed.getvalue()

    return ran
