"""Which MXNet is installed, whether it loads, and what it can do."""

import json
import subprocess
import sys

from . import libraries
from .finding import BAD, NOTE, Finding
from .python import MAKE, installed

BUILDS = {"mxnet": "for the CPU", "mxnet-cu112": "for GPUs, CUDA 11.2"}
#: What a reader may want to know of; the rest are instruction sets and tools.
SHOWN = ("CUDA", "CUDNN", "NCCL", "MKLDNN", "OPENMP", "DIST_KVSTORE")
PATIENCE = 120  # seconds: a broken driver can keep a process that asks it for ever


def probe():
    """Run `probe.py` in a process of its own; return what it printed, as a dict."""
    command = [sys.executable, "-m", "bookkit.doctor.probe"]
    try:
        ran = subprocess.run(
            command, capture_output=True, text=True, timeout=PATIENCE, check=False
        )
    except subprocess.TimeoutExpired:
        return {"slow": f"did not load within {PATIENCE} s"}
    if ran.returncode != 0:
        last = (ran.stderr.strip().splitlines() or ["no message"])[-1]
        return {"error": f"loading it ended with code {ran.returncode}: {last}"}
    return json.loads(ran.stdout.splitlines()[-1])


def examine(answer, version_of=installed):
    """Return the findings about the `answer` of `probe`."""
    builds = [name for name in BUILDS if version_of(name)]
    if answer.get("missing"):
        return [Finding("MXNet", "not installed", BAD, MAKE)]
    if "slow" in answer:
        return [Finding("MXNet", answer["slow"], BAD, "nvidia-smi")]
    if "error" in answer:
        return [_does_not_load(answer["error"])]
    kind = " and ".join(f"{name}, {BUILDS[name]}" for name in builds)
    found = [Finding("MXNet", f"{answer['version']} ({kind or 'built here'})")]
    if len(builds) > 1:
        text = "two builds lie over each other in one folder"
        found.append(Finding("MXNet", text, NOTE, "make distclean book"))
    has = [name for name in SHOWN if name in answer["features"]]
    found.append(Finding("features", " ".join(has)))
    if "CUDA" in has:
        found.append(Finding("GPUs that MXNet sees", str(answer["gpus"])))
    return found


def _does_not_load(message):
    file = message.partition(":")[0]
    if file == "libcuda.so.1":
        text = "the GPU build does not load: libcuda.so.1 comes with NVIDIA's driver, "
        advice = "make book DEVICE=cpu"
        return Finding("MXNet", text + "which is missing", BAD, advice)
    if file in libraries.SYSTEM:
        text = f"does not load: {file} is missing"
        return Finding("MXNet", text, BAD, libraries.install(file))
    if file in libraries.WHEELS:
        text = f"does not load: {file} is missing, from {libraries.WHEELS[file]}"
        return Finding("MXNet", text, BAD, "make distclean book DEVICE=gpu")
    return Finding("MXNet", f"does not load: {message}", BAD, "make distclean book")
