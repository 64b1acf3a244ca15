"""Python, its packages and MXNet: are they installed, and do they fit together?"""

import json
import platform
import subprocess
import sys
import sysconfig
from importlib import metadata
from pathlib import Path

from d2l_ext.runtime import SUPPORTED_PYTHON

from . import BAD, NOTE, OK, Finding

#: What the book cannot do without, apart from MXNet: packages, and what imports them.
NEEDED = {
    "d2l": "the chapters",
    "matplotlib": "the chapters",
    "scikit-learn": "the chapters",
    "nbclient": "make book",
    "jupyter-book": "make book",
    "nbval": "make test",
}
MAKE = "make book"
#: MXNet 1.9.1 reads `numpy.bool` when it is loaded; NumPy 1.24 removed it.
NUMPY_WITHOUT_BOOL = (1, 24)
BUILDS = {"mxnet": "for the CPU", "mxnet-cu112": "for GPUs, CUDA 11.2"}
#: Features of interest to a reader; the others are instruction sets and tools.
SHOWN = ("CUDA", "CUDNN", "NCCL", "MKLDNN", "OPENMP", "DIST_KVSTORE")
PATIENCE = 120  # seconds: a broken driver can keep a process that asks it forever
#: The libraries that MXNet's GPU build links to, and the wheels that contain them.
WHEELS = {
    "libcublas.so.11": "nvidia-cublas-cu11",
    "libcudart.so.11.0": "nvidia-cuda-runtime-cu11",
    "libcudnn.so.8": "nvidia-cudnn-cu11",
    "libcufft.so.10": "nvidia-cufft-cu11",
    "libcurand.so.10": "nvidia-curand-cu11",
    "libcusolver.so.11": "nvidia-cusolver-cu11",
    "libnccl.so.2": "nvidia-nccl-cu11",
    "libnvToolsExt.so.1": "nvidia-nvtx-cu11",
    "libnvrtc.so.11.2": "nvidia-cuda-nvrtc-cu11",
}
#: The system libraries that both builds need, and their Debian packages.
SYSTEM = {"libgomp.so.1": "libgomp1", "libquadmath.so.0": "libquadmath0"}


def installed(package):
    """Return the version of `package` in this environment, or None."""
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return None


def python(version_of=installed, version=None):
    """Return the findings about Python, `version` by default the one that runs, and
    packages.

    `version_of(package)`: None for a missing package.
    """
    version = version or sys.version_info[:3]
    return [_python(version), _numpy(version_of("numpy")), _packages(version_of)]


def _python(version):
    oldest, newest = SUPPORTED_PYTHON
    text = f"{'.'.join(map(str, version))} ({platform.machine()})"
    if oldest <= version[:2] <= newest:
        return Finding("Python", text)
    return Finding("Python", f"{text}: not 3.9 to 3.11", BAD, "install Python 3.11")


def _numpy(version):
    if version is None:
        return Finding("NumPy", "not installed", BAD, MAKE)
    if tuple(map(int, version.split(".")[:2])) >= NUMPY_WITHOUT_BOOL:
        text = f"{version}: MXNet 1.9.1 needs one before 1.24"
        return Finding("NumPy", text, BAD, MAKE)
    return Finding("NumPy", version, OK)


def _packages(version_of):
    missing = [name for name in NEEDED if version_of(name) is None]
    if not missing:
        return Finding("packages", "all there")
    text = "missing: " + ", ".join(f"{name} ({NEEDED[name]})" for name in missing)
    fatal = any(NEEDED[name] == "the chapters" for name in missing)
    return Finding("packages", text, BAD if fatal else NOTE, MAKE)


def probe():
    """Run `probe.py` in a process of its own; return its output as a dict."""
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


def mxnet(answer, version_of=installed):
    """Return the findings about MXNet's build, from the `answer` of `probe`."""
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
        text = "two builds are mixed in one folder"
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
    if file in SYSTEM:
        text = f"does not load: {file} is missing"
        return Finding("MXNet", text, BAD, f"sudo apt-get install {SYSTEM[file]}")
    if file in WHEELS:
        text = f"does not load: {file} is missing, from {WHEELS[file]}"
        return Finding("MXNet", text, BAD, "make distclean book DEVICE=gpu")
    return Finding("MXNet", f"does not load: {message}", BAD, "make distclean book")


def cuda_libraries(site=None):
    """Return the finding about CUDA's libraries in the site-packages folder `site`.

    The CPU build needs none of them: `report.examine` asks only for the GPU build.
    """
    root = Path(site or sysconfig.get_paths()["purelib"]) / "nvidia"
    there = {path.name for path in root.glob("*/lib/*")}
    missing = [f"{file} ({WHEELS[file]})" for file in WHEELS if file not in there]
    if not missing:
        return [Finding("CUDA libraries", f"all {len(WHEELS)}, from wheels")]
    text = f"{len(missing)} of {len(WHEELS)} missing: {', '.join(missing)}"
    return [Finding("CUDA libraries", text, NOTE, "make distclean book DEVICE=gpu")]
