"""The libraries that MXNet links to: where each comes from, and which are missing."""

import sysconfig
from pathlib import Path

from .finding import NOTE, Finding

#: What MXNet's GPU build links to, and the wheel that brings it.
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
#: What both builds need of the system, and Debian's package.
SYSTEM = {"libgomp.so.1": "libgomp1", "libquadmath.so.0": "libquadmath0"}


def install(file):
    """The command that brings the system library `file`."""
    return f"sudo apt-get install {SYSTEM[file]}"


def examine(site=None):
    """Return the finding about CUDA's libraries in the site-packages folder `site`.

    None of them is needed by the CPU build: then there is nothing to say.
    """
    root = Path(site or sysconfig.get_paths()["purelib"]) / "nvidia"
    there = {path.name for path in root.glob("*/lib/*")}
    missing = [f"{file} ({WHEELS[file]})" for file in WHEELS if file not in there]
    if not missing:
        return [Finding("CUDA libraries", f"all {len(WHEELS)}, from wheels")]
    text = f"{len(missing)} of {len(WHEELS)} missing: {', '.join(missing)}"
    return [Finding("CUDA libraries", text, NOTE, "make distclean book DEVICE=gpu")]
