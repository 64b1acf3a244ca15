"""What the tests of the trainer share."""

import d2l_ext  # noqa: F401, I001
import pytest

from d2l_ext import train


@pytest.fixture
def run(capsys):
    """Runs the command; returns exit code, standard output and standard error."""

    def main(*argv):
        capsys.readouterr()
        try:
            code = train.main([str(word) for word in argv])
        except SystemExit as exit:
            code = exit.code
        return code, *capsys.readouterr()

    return main
