"""A GPU that MXNet cannot use is hidden from CUDA, and asking for it says why."""

import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import nvml_answers as played
import pytest
from nvml_answers import A10, B200, H200, V100, Machine

from d2l_ext.devices import gpus


@pytest.fixture
def here(monkeypatch):
    """A function that sets what the driver of this machine says."""

    def set_machine(machine):
        library = played.Library(machine)
        answers = gpus.read(lambda name: library)
        monkeypatch.setattr(gpus, "by_driver", lambda: answers)

    return set_machine


@pytest.mark.parametrize(("cards", "before", "after"), [
    ([], None, None),
    ([A10, A10], None, None),
    ([A10, A10], "1", "1"),
    ([H200], None, ""),
    ([H200, H200], "0", ""),
    ([B200, A10], None, "GPU-a10"),
    ([B200, A10], "GPU-b200", "GPU-b200"),
])
def test_cuda_is_shown_the_gpus_that_mxnet_can_use(here, cards, before, after):
    here(Machine(cards))
    environ = {} if before is None else {gpus.VISIBLE: before}
    gpus.hide(environ)
    assert environ.get(gpus.VISIBLE) == after


@pytest.mark.parametrize(("driver", "before", "after"), [
    ("470.256.02", {}, {"MXNET_USE_FUSION": "0"}),
    ("470.256.02", {"MXNET_USE_FUSION": "1"}, {"MXNET_USE_FUSION": "1"}),
    ("520.61.05", {}, {}),
])
def test_fusion_is_left_off_where_the_driver_cannot_read_its_code(
    here, driver, before, after
):
    here(Machine([V100], driver=driver))
    gpus.leave_fusion_off(before)
    assert before == after


def test_without_a_driver_nothing_is_set(monkeypatch):
    answers = gpus.read(played.no_library)
    monkeypatch.setattr(gpus, "by_driver", lambda: answers)
    environ = {}
    gpus.hide(environ)
    gpus.leave_fusion_off(environ)
    assert environ == {}


class FakeMxnet:
    """MXNet as far as `gpus.refuse_hidden` knows it: `seen` GPUs under three names."""

    def __init__(self, monkeypatch, seen):
        def gpu(device_id=0):
            return f"gpu({device_id})"

        for name in ("mxnet", "mxnet.context", "mxnet.numpy_extension", "other"):
            module = SimpleNamespace(gpu=gpu)
            monkeypatch.setitem(gpus.sys.modules, name, module)
        modules = gpus.sys.modules
        self.mx, self.other = modules["mxnet"], modules["other"]
        self.npx = modules["mxnet.numpy_extension"]
        self.mx.context = modules["mxnet.context"]
        self.mx.context.num_gpus = lambda: seen


def test_a_gpu_that_cannot_be_used_is_refused_under_every_name(here, monkeypatch):
    here(Machine([H200]))
    fake = FakeMxnet(monkeypatch, seen=0)
    gpus.refuse_hidden(fake.mx)
    for gpu in (fake.mx.gpu, fake.mx.context.gpu, fake.npx.gpu):
        with pytest.raises(RuntimeError, match=r"gpu\(0\).*H200.*9\.0"):
            gpu(0)
    assert fake.other.gpu(0) == "gpu(0)"


def test_beside_it_the_gpus_that_mxnet_sees_can_be_asked_for(here, monkeypatch):
    here(Machine([B200, A10]))
    fake = FakeMxnet(monkeypatch, seen=1)
    gpus.refuse_hidden(fake.mx)
    gpus.refuse_hidden(fake.mx)  # a second time changes nothing
    assert fake.mx.gpu() == fake.mx.gpu(0) == "gpu(0)"
    with pytest.raises(RuntimeError, match="NVIDIA B200"):
        fake.mx.gpu(1)


def test_where_every_gpu_is_usable_mxnet_is_left_as_it_is(here, monkeypatch):
    here(Machine([A10]))
    fake = FakeMxnet(monkeypatch, seen=1)
    before = fake.mx.gpu
    gpus.refuse_hidden(fake.mx)
    assert fake.mx.gpu is before


def test_mxnet_itself_refuses_such_a_gpu_and_the_book_takes_cpu_contexts():
    code = """
from nvml_answers import H200, Library, Machine
import d2l_ext
from d2l_ext.devices import gpus
library = Library(Machine([H200]))
answers = gpus.read(lambda name: library)
gpus.by_driver = lambda: answers
import mxnet as mx
from d2l_ext import devices
assert devices.try_all_devices(2) == [mx.cpu(0), mx.cpu(1)]
for ask in (mx.gpu, mx.context.gpu, mx.npx.gpu):
    try:
        mx.np.ones(2, ctx=ask(0))
    except RuntimeError as error:
        print(error)
print(devices.describe(devices.try_all_devices(2)))
"""
    ran = subprocess.run(
        [sys.executable, "-c", code],
        cwd=Path(__file__).parents[1] / "helpers", capture_output=True, text=True,
        timeout=600, check=False,
    )
    assert (ran.returncode, ran.stderr) == (0, "")
    *refusals, described = ran.stdout.splitlines()
    assert len(refusals) == 3
    for line in refusals:
        assert line.startswith("gpu(0) cannot be used: NVIDIA H200: its compute")
        assert "try_all_devices(k), which returns CPU contexts here" in line
    assert "0 GPUs found [NVIDIA H200: its compute capability is 9.0" in described
