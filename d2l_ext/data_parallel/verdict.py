"""Why a second device may not help: the causes, and a report of what was measured."""

from dataclasses import dataclass

#: The causes, in the order in which `diagnose` asks for them, and what to do.
ADVICE = {
    "same device twice": "Name different devices: `try_all_devices(k)`. Without GPUs, "
    "`d2l.try_gpu(0)` and `d2l.try_gpu(1)` are both cpu(0).",
    "settings": "Set this before Python starts, then ask again: {}",
    "waiting for data": "Once in every step, no device has work for long. Is it the "
    "data loader, or other code of yours? Prepare the next minibatch in a thread.",
    "Python overhead": "The devices wait for Python to ask. Take larger minibatches, "
    "hybridise the network, use fewer and larger operators.",
    "blocking call": "Python waits for one device before it asks the other, longest in "
    "`{}`. Keep the array, and read it after the step.",
    "shared resource": "Python asks in time, yet the devices take turns. Does one need "
    "a result of the other? Do both draw random numbers, as dropout does? Then set "
    "MXNET_CPU_PARALLEL_RAND_COPY=16 before Python starts.",
    "slowest device": "The others wait for it. Give it fewer examples, by "
    "`work_load_list`, or take away what else it does.",
    "healthy": "The devices work side by side. What is left is the work that is not "
    "divided, and what devices share: memory, caches, cores.",
}


@dataclass
class Verdict:
    """The cause, what to do, and what was measured. Print it for a report."""

    cause: str  # a key of `ADVICE`
    advice: str
    seconds: float  # per step, without the profiler
    busy: dict  # device name: share of the time in which it worked
    overlap: float  # time side by side, as a share of what the lanes would allow
    idle: float  # share of the time in which no device worked
    longest_wait: float  # seconds in one blocking call of Python

    def __str__(self):
        rows = {"time per step": f"{self.seconds * 1e3:.1f} ms"}
        rows.update((f"{name} works", f"{b:.0%}") for name, b in self.busy.items())
        rows["side by side"] = f"{self.overlap:.0%} of what is possible"
        rows["no device works"] = f"{self.idle:.0%}"
        rows["longest wait of Python"] = f"{self.longest_wait * 1e3:.1f} ms"
        lines = [f"  {name:24}{value}" for name, value in rows.items()]
        return "\n".join([f"cause: {self.cause}", *lines, self.advice])
