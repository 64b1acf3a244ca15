"""Jobs on the hosts of a box: their output, and the files on each host afterwards.

Each function makes a fresh box, and returns numbers and texts alone, with the paths of
this machine taken out, so that its result can be stored and shown.
"""

import os
import sys
from pathlib import Path

import numpy

from d2l_ext.data import formats
from netbox import machine
from netbox.cluster import Cluster

#: A folder that each host has for itself, as the results name it.
OWN = "/own"
#: Runs a command in a folder that this process may not see.
IN_FOLDER = 'cd "$0" && exec "$@"'
#: Three workers and three servers on five hosts that share no working directory.
LENET = """-n 3 -s 3 --launcher ssh -H hosts --sync-dst-dir /own/job --ps-verbose 1
python -m d2l_ext.train --network lenet --dataset digits --batch-size 64
--num-epochs 1 --kv-store dist_sync --save-prefix run/lenet"""
#: VGG-11 as the source prints it, and what keeps it small.
VGG_STEP = """--dataset cifar10 --model vgg11 --epochs 1
--data-dir cifar --num-examples 12 --lr 0.01"""
VGG = f"""-n 3 -H hosts --launcher ssh --sync-dst-dir /own/job/
python -m d2l_ext.train {VGG_STEP}
--kvstore dist_sync --batch-size 4"""


def why_not():
    """Return None if these jobs can run here, else a sentence with the reason."""
    if not machine.find("rsync"):
        return "Each host's copy of the folder needs rsync: install Debian's rsync."
    return machine.why_not()


def lenet():
    """Run LeNet on digits; return the result of `launched`."""
    return launched(LENET, {"notes.txt": "Any file will do."}, hosts=5)


def vgg():
    """Run VGG-11 on images in CIFAR-10's format; return the result of `launched`."""
    return launched(VGG, cifar_files())


def cifar_files(images=4):
    """Return the six files in the format of CIFAR-10, with `images` images each: random
    pixels, with labels in turn. A dict from path to bytes.
    """
    rng, files = numpy.random.default_rng(0), {}
    for name in formats.CIFAR_FILES:
        records = rng.integers(0, 256, (images, formats.RECORD), dtype="uint8")
        records[:, 0] = numpy.arange(images) % formats.NUM_CLASSES
        files[f"cifar/{name}"] = records.tobytes()
    return files


def launched(words, files, hosts=3, deadline=600):
    """Run `python -m pslaunch WORDS` on the head of a box; return its outcome.

    `words`: a text; `python` in it is this Python, and the file `hosts` names the
    hosts. `files`: texts or bytes by name, put into the working directory,
    `/own/work`, which the head alone has. `/own` is a different folder on every host.

    Returns a dict: `returncode`; `lines`, of each process, by name; `said`, the
    launcher's own lines; `files`, of each host in its `/own`, by host; `left`: how
    many processes still run on each.
    """
    with Cluster(hosts) as cluster:
        work = _working_directory(cluster, files)
        own = cluster.head.private
        command = [sys.executable if word == "python" else word.replace(OWN, own)
                   for word in words.split()]
        done = cluster.head.run(
            ["sh", "-c", IN_FOLDER, work, sys.executable, "-m", "pslaunch",
             "--deadline", str(deadline), *command],
            timeout=deadline + 30, env=environ(),
        )
        lines = {}
        for line in done.stdout.replace(own, OWN).splitlines():
            name, _, text = line.partition(" | ")
            lines.setdefault(name.strip(), []).append(text)
        return {
            "returncode": done.returncode,
            "lines": lines,
            "said": done.stderr.replace(own, OWN).splitlines(),
            "files": {host.name: _files(host.disk) for host in cluster.hosts},
            "left": {host.name: len(host.processes()) for host in cluster.hosts},
        }


def _working_directory(cluster, files):
    folder = cluster.head.disk / "work"
    folder.mkdir()
    hosts = Path(cluster.hosts_file).read_text()
    for name, content in {**files, "hosts": hosts}.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return f"{cluster.head.private}/work"


def environ():
    """Return this process's environment, with this library as `d2l_ext`."""
    root = str(Path(__file__).resolve().parents[3])
    return {**os.environ, "PYTHONPATH": root}


def _files(folder):
    return sorted(str(p.relative_to(folder)) for p in folder.rglob("*") if p.is_file())
