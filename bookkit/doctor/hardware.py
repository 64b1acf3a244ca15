"""Cores, memory, driver and GPUs: which GPUs can be used, and why not the others."""

import os
from pathlib import Path

from d2l_ext.devices import gpus
from d2l_ext.runtime import SETTINGS, cores

from . import NOTE, Finding
from .driver import More

#: Below this, MXNet's DataLoader workers, which pass minibatches through shared
#: memory, may die of a bus error. Docker gives a container 64 MB.
SHARED = 256 * 2**20
NVIDIA, DISPLAYS = "0x10de", ("0x0300", "0x0302")  # as PCI numbers them


def machine(environ=os.environ, count=None, shared="/dev/shm"):
    """Return the findings about cores, thread settings and shared memory."""
    count = count or cores()
    found = [_cores(count)]
    for name, value in SETTINGS.items():
        if environ.get(name, value) != value:
            text = f"{environ[name]}, where the book sets {value}: two CPU devices "
            advice = f"unset {name}"
            found.append(Finding(name, text + "may not run side by side", NOTE, advice))
        else:
            found.append(Finding(name, value))
    return found + _shared_memory(shared)


def _cores(count):
    if count > 1:
        return Finding("cores", str(count))
    text = "1: two CPU devices take turns, and no chapter shows a speed-up"
    return Finding("cores", text, NOTE, "give the machine a second core")


def _shared_memory(path):
    try:
        state = os.statvfs(path)
    except OSError:
        return []
    size = state.f_frsize * state.f_blocks
    if size >= SHARED:
        return []
    text = f"{size // 2**20} MB: too little for a DataLoader with workers"
    return [Finding("shared memory", text, NOTE, "for a container: --shm-size=1g")]


def plugged_in(system="/sys"):
    """Return the number of NVIDIA graphics cards, with or without a driver."""
    found = 0
    for device in Path(system, "bus/pci/devices").glob("*"):
        try:
            vendor = (device / "vendor").read_text().strip()
            kind = (device / "class").read_text()
        except OSError:
            continue
        found += vendor == NVIDIA and kind.startswith(DISPLAYS)
    return found


def cards(answers, plugged_in=0, visible=None):
    """Return the findings about the driver and the GPUs, from NVML's `answers`.

    `plugged_in`: the result of that function. `visible`: the reader's own
    CUDA_VISIBLE_DEVICES, None if it is not set.
    """
    found, more = [_driver(answers, plugged_in)], answers.more or More()
    each = zip(answers.gpus, more.memory, more.mig)
    found += [_gpu(i, *of_one, answers.driver) for i, of_one in enumerate(each)]
    if answers.driver and not answers.gpus and not answers.problem:
        found.append(Finding("GPUs", "the driver lists none", NOTE))
    found += _links(more.links)
    if visible is not None and answers.gpus:
        text = f"CUDA_VISIBLE_DEVICES={visible} hides the GPUs that it does not name"
        found.append(Finding("GPUs", text, NOTE, "unset CUDA_VISIBLE_DEVICES"))
    return found


def _driver(answers, plugged_in):
    if not answers.driver and not plugged_in:
        return Finding("driver", answers.problem)
    if not answers.driver:
        count = f"{plugged_in} NVIDIA card{'s' * (plugged_in > 1)} plugged in"
        advice = "install NVIDIA's driver; for a container: --gpus all"
        if "kernel module" in answers.problem:  # the driver is there
            advice = "reboot, or look at the output of dmesg"
        return Finding("driver", f"{answers.problem}; {count}", NOTE, advice)
    old = gpus.driver_problem(answers.driver)
    oldest = gpus.dotted(gpus.OLDEST_DRIVER)
    if old:
        text, advice = f"{answers.driver}: {old}", f"install driver {oldest} or later"
        return Finding("driver", text, NOTE, advice)
    if answers.problem:
        return Finding("driver", f"{answers.driver}: {answers.problem}", NOTE)
    text = f"{answers.driver} (up to CUDA {gpus.dotted(answers.more.cuda)})"
    if gpus.version(answers.driver) < gpus.FUSION_DRIVER:
        newer = gpus.dotted(gpus.FUSION_DRIVER)
        text += f", before {newer}: fused operators are switched off"
        return Finding("driver", text, NOTE, f"install driver {newer} or later")
    return Finding("driver", text)


def _gpu(index, gpu, memory, mig, driver):
    topic = f"GPU {index}"
    capability = gpus.dotted(gpu.capability)
    text = f"{gpu.name}, {memory / 2**30:.1f} GiB, capability {capability}: "
    code = gpus.code_for(gpu.capability)
    if not code:
        return Finding(topic, f"{text}not usable, as {gpus.HOLDS}", NOTE)
    if gpus.driver_problem(driver):
        return Finding(topic, text + "not usable with this driver", NOTE)
    text += f"usable, with the machine code for {gpus.dotted(code)}"
    if mig:
        text += "; divided by MIG, and CUDA shows a process one instance at most"
        return Finding(topic, text, NOTE, "sudo nvidia-smi -mig 0")
    return Finding(topic, text)


def _links(links):
    """Return one finding for all pairs of GPUs with the same connection."""
    alike = {}
    for link in links:
        pair = f"{link.first}–{link.second}"
        alike.setdefault((link.path, link.peers), []).append(pair)
    return [
        Finding(f"GPUs {', '.join(pairs)}", f"{path}, {_copies(peers)}")
        for (path, peers), pairs in alike.items()
    ]


def _copies(peers):
    return "peer-to-peer" if peers else "no peer-to-peer: copies go through the host"
