"""Names of the source documents are there, whatever was imported before them."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

import d2l_ext  # the programs find its settings in their environment

ROOT = Path(__file__).parents[2]
#: What a reader of the source documents may write first.
IMPORTS = (
    "from d2l_ext import allreduce, split_batch, get_params, train_batch, train, lenet",
    "import d2l_ext.data_parallel",
    "import trainkit.command",
)
#: MXNet and d2l are imported once; each program has a process of its own.
ALONE = """
import os, sys
import d2l.mxnet
for program in sys.argv[1:]:
    pid = os.fork()
    if not pid:
        exec(program, {})
        os._exit(0)
    assert not os.waitpid(pid, 0)[1], program
"""
BEGIN = """
import d2l_ext
from mxnet import cpu, np
devices = [cpu(0), cpu(1)]
def called(allreduce):
    data = [np.ones(3, ctx=device) * (i + 1) for i, device in enumerate(devices)]
    allreduce(data)
    return [x.tolist() for x in data] == [[3, 3, 3]] * 2
"""
THEY_DO_THE_THING = """
import d2l_ext.data_parallel, d2l_ext.data_parallel.lenet as model
from d2l_ext import allreduce, get_params, lenet, split_batch, train, train_batch
assert called(allreduce)
X, y = np.ones((4, 1, 28, 28)), np.zeros(4, dtype="int32")
assert [len(shard) for shard in split_batch(X, y, devices)[1]] == [2, 2]
start = model.init_params()
replicas = [get_params(start, device) for device in devices]
assert lenet(X, start).shape == (4, 10)
train_batch(X, y, replicas, devices, 0.1)
assert all((p != q).any() for p, q in zip(start[-1:], replicas[0][-1:]))
assert (replicas[0][0].as_in_ctx(cpu(0)) == replicas[1][0].as_in_ctx(cpu(0))).all()
history = train(2, 4, 0.1, num_epochs=2, data=([(X, y)], [(X, y)]), devices=devices)
assert history.steps == [1, 1]
"""


def run(*words):
    ran = subprocess.run([sys.executable, *words], capture_output=True, text=True,
                         check=False, timeout=300, cwd=ROOT)
    assert (ran.returncode, ran.stderr) == (0, "")


def test_they_are_the_functions_whatever_was_imported_first():
    run("-c", ALONE, *(BEGIN + first + THEY_DO_THE_THING for first in IMPORTS))


@pytest.mark.parametrize("options", [[], ["-S"]])
def test_the_library_alone_needs_neither_numpy_nor_mxnet(options):
    code = ("import sys; sys.path.insert(0, sys.argv[1]); import d2l_ext; "
            "assert not {'numpy', 'mxnet'} & {*sys.modules}")
    run(*options, "-c", code, os.fspath(ROOT))


def test_a_name_that_nobody_has_is_missed_as_in_any_module():
    with pytest.raises(AttributeError, match="'d2l_ext' has no attribute 'lenett'"):
        d2l_ext.lenett  # noqa: B018
