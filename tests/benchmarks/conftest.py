"""What tests of several benchmarks share: a run of a few steps, on no quiet machine."""

import io
from contextlib import redirect_stdout

import pytest

from benchmarks import command, machine
from bookkit import stored


@pytest.fixture(scope="session")
def run(tmp_path_factory):
    """A function: runs a benchmark's command; what it stores, and what it prints."""

    def ran(module, name, *words):
        folder = tmp_path_factory.mktemp("bench")
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(command, "OUTPUT", folder)
            # Whether the machine is quiet takes seconds to find out.
            patch.setattr(machine, "quietness", lambda start: {"warnings": []})
            with redirect_stdout(io.StringIO()) as printed:
                assert not module.main([*map(str, words)])
        return stored.read(name, folder).data, printed.getvalue()

    return ran
