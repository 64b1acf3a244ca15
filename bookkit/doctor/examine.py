"""All findings about this machine, in the order in which they are printed."""

import os
from dataclasses import asdict, dataclass

from d2l_ext import runtime
from d2l_ext.devices import gpus, nvml

from . import (
    build,
    cards,
    cluster,
    libraries,
    machine,
    ports,
    python,
    verdict,
)


@dataclass(frozen=True)
class Report:
    """What was found: `sections` maps a title to a list of findings."""

    sections: dict
    answers: object
    verdict: verdict.Verdict

    def as_dict(self):
        """The same as plain lists and dicts, for JSON."""
        return {
            "runs": self.verdict.runs,
            "verdict": self.verdict.text,
            "next": self.verdict.next,
            "set": "gpu" if gpus.usable(self.answers) else "cpu",
            "nvml": self.answers.as_dict(),
            "findings": [
                {"section": title, **asdict(finding)}
                for title, findings in self.sections.items()
                for finding in findings
            ],
        }


def examine(read=nvml.read, probe=build.probe):
    """Look at this machine and return a `Report`.

    `read`: what asks NVML. `probe`: what asks MXNet's library.
    """
    answers, probed = read(), probe()
    # Where no GPU fits, the library itself hides them all from CUDA.
    fit = gpus.usable(answers)
    visible = os.environ.get(gpus.VISIBLE) if fit else None
    sections = {
        "Python": python.examine(),
        "MXNet": build.examine(probed),
        "GPUs": cards.examine(answers, cards.plugged_in(), visible),
        "This machine": machine.examine(),
        "Several machines": cluster.examine() + ports.examine(),
    }
    if "CUDA" in probed.get("features", ()) or "error" in probed:
        sections["GPUs"] += _libraries()
    every = [finding for found in sections.values() for finding in found]
    return Report(
        sections, answers, verdict.decide(every, answers, probed, runtime.cores())
    )


def _libraries():
    gpu_build = python.installed("mxnet-cu112")
    return libraries.examine() if gpu_build else []
