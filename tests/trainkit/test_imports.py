"""What a process of the trainer imports, because each of its workers waits for that."""

import subprocess
import sys

TRAIN = """
import sys
from trainkit import command

few = ["--network", "mlp", "--num-examples", "64", "--num-epochs", "1"]
assert command.main(few) == 0
from d2l_ext.kvstore import dist_train  # of a worker in a job

needless = {"d2l", "matplotlib", "pandas", "sklearn", "scipy.stats"}
assert "mxnet" in sys.modules and not needless & sys.modules.keys()
assert dist_train.d2l.sgd.__module__ == "d2l.mxnet"  # on the first access
"""


def test_a_worker_imports_mxnet_and_nothing_that_takes_as_long():
    subprocess.run([sys.executable, "-c", TRAIN], check=True)
