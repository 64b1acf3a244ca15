"""The command `python -m d2l_ext.train --network lenet --devices cpu:0,cpu:1`.

The package `trainkit` does what it says; this file hands over to it.
"""

from trainkit.command import command, main  # noqa: F401

from . import lazy

if __name__ == "__main__":
    command()
else:  # the name of a function, too, in a source document
    lazy.callable_as(__name__, "d2l_ext.data_parallel", "train")
