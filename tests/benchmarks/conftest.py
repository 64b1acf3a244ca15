"""What tests of several benchmarks share: a run of a few steps."""

import json
import subprocess
import sys
from pathlib import Path

import jsonschema
import pytest

BENCHMARKS = Path(__file__).resolve().parents[2] / "benchmarks"


@pytest.fixture(scope="session")
def run(tmp_path_factory):
    """A function: runs a benchmark; its result, which follows the schema if there is
    one of its own, and what it printed."""

    def ran(name, *options, schema=None):
        output = tmp_path_factory.mktemp("bench") / "out" / "result.json"
        command = [sys.executable, BENCHMARKS / f"{name}.py", *options]
        done = subprocess.run([*command, "--output", output], check=False, timeout=150,
                              capture_output=True, text=True)  # fmt: skip
        assert done.returncode == 0, done.stderr
        result = json.loads(output.read_text())
        if schema:
            jsonschema.validate(result, json.loads((BENCHMARKS / schema).read_text()))
        return result, done.stdout

    return ran
