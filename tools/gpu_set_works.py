"""The checks of `make check-gpu-set` inside an environment with the GPU set."""

import os
import subprocess
import sys
import sysconfig
from pathlib import Path

import d2l_ext  # noqa: F401  (before MXNet: it loads CUDA's libraries)

# isort: split
import mxnet as mx
from mxnet import np, npx

from bookkit.doctor import software
from d2l_ext.data_parallel import train
from d2l_ext.devices import try_all_devices

FEATURES = ("CUDA", "CUDNN", "NCCL", "DIST_KVSTORE")


def check(holds, statement):
    """Print that `statement` holds, or exit with it as an error."""
    if not holds:
        sys.exit(f"FAILED: {statement}")
    print(f"ok: {statement}", flush=True)


def what_is_said_without(file):
    """Return the doctor's report in an environment that lacks CUDA's library `file`."""
    root = Path(sysconfig.get_paths()["purelib"], "nvidia")
    (path,) = root.glob(f"*/lib/{file}")
    away = path.with_name("away")  # a name with .so in it would be loaded
    path.rename(away)
    try:
        command = [sys.executable, "-m", "bookkit.doctor"]
        return subprocess.run(command, capture_output=True, text=True, check=False)
    finally:
        away.rename(path)


def main():
    """Check everything; return 0, or end at the first that fails."""
    check("LD_LIBRARY_PATH" not in os.environ, "nobody set LD_LIBRARY_PATH")
    features = mx.runtime.Features()
    for name in FEATURES:
        check(features.is_enabled(name), f"MXNet has the feature {name}")
    gpus = mx.context.num_gpus()
    print(f"MXNet sees {gpus} GPUs")

    npx.set_np()
    devices = try_all_devices(2, force="cpu")
    total = sum(float(np.ones((2, 3), ctx=device).sum()) for device in devices)
    check(total == 12, "arrays live on two CPU contexts")
    history = train(2, 64, 0.2, devices=devices, num_epochs=1)
    check(0 < history.accuracy[-1] <= 1, "LeNet trains an epoch on two CPU contexts")

    train_one = [sys.executable, "-m", "d2l_ext.train", "--num-epochs", "1"]
    job = ["pslaunch", "-n", "1", "-s", "1", *train_one, "--kv-store", "dist_sync"]
    ran = subprocess.run([sys.executable, "-m", *job], check=False)
    check(ran.returncode == 0, "a worker trains an epoch with a server's help")

    ran = subprocess.run([sys.executable, "-m", "bookkit.doctor"], check=False)
    check(ran.returncode == 0, "the doctor says that the book can run")
    for file, wheel in software.WHEELS.items():
        ran = what_is_said_without(file)
        named = f"{file} is missing, from {wheel}" in ran.stdout
        check(ran.returncode == 1 and named, f"without {file} the doctor names {wheel}")
    chosen = subprocess.run(
        ["tools/find_device.sh"], env={**os.environ, "DEVICE": ""},
        capture_output=True, text=True, check=True,
    )
    print(f"here, make book takes the set: {chosen.stdout}  {chosen.stderr}", end="")
    return 0


if __name__ == "__main__":
    sys.exit(main())
