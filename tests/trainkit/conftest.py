"""What the tests of the trainer share."""

import d2l_ext  # noqa: F401, I001
import re

import pytest

from trainkit import command


@pytest.fixture
def run(capsys):
    """Runs the command; returns exit code, standard output and standard error."""

    def main(*argv):
        capsys.readouterr()
        try:
            code = command.main([str(word) for word in argv])
        except SystemExit as exit:
            code = exit.code
        return code, *capsys.readouterr()

    return main


@pytest.fixture
def refused(run):
    """Checks that flags end the command with code 2, and a line that says why."""

    def main(*argv, why):
        code, out, err = run(*argv)
        assert (code, out, err.count("\n")) == (2, "", 1), err
        assert err.startswith("d2l-ext-train: error: ") and re.search(why, err), err

    return main
