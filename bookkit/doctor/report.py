"""All findings about this machine, and the verdict.

Can the book run here, on which devices, and what is the next step?
"""

import os
from dataclasses import asdict, dataclass

from d2l_ext.devices import gpus
from d2l_ext.runtime import cores

from . import BAD, cluster, driver, hardware, software
from .software import MAKE


@dataclass(frozen=True)
class Readiness:
    """`runs`: whether the book can run. `next`: the command to type now, or advice."""

    runs: bool
    text: str
    next: str


@dataclass(frozen=True)
class Report:
    """All findings; `sections` maps a title to a list of them."""

    sections: dict
    answers: object
    verdict: Readiness

    def as_dict(self):
        """Return the same as plain lists and dicts, for JSON."""
        return {
            "runs": self.verdict.runs,
            "verdict": self.verdict.text,
            "next": self.verdict.next,
            "set": "gpu" if gpus.usable(self.answers) else "cpu",
            "nvml": asdict(self.answers),
            "findings": [
                {"section": title, **asdict(finding)}
                for title, findings in self.sections.items()
                for finding in findings
            ],
        }


def examine(read=driver.read, probe=software.probe):
    """Look at this machine and return a `Report`.

    `read`: the function that queries NVML; `probe`: the one for MXNet's library.
    """
    answers, probed = read(), probe()
    visible = os.environ.get(gpus.VISIBLE)
    if visible == ",".join(gpu.uuid for gpu in gpus.usable(answers)):
        visible = None  # the library itself hides the GPUs that MXNet cannot use
    sections = {
        "Python": software.python(),
        "MXNet": software.mxnet(probed),
        "GPUs": hardware.cards(answers, hardware.plugged_in(), visible),
        "This machine": hardware.machine(),
        "Several machines": cluster.tools() + cluster.ports(),
    }
    needed = "CUDA" in probed.get("features", ()) or "error" in probed
    if needed and software.installed("mxnet-cu112"):
        sections["GPUs"] += software.cuda_libraries()
    every = [finding for found in sections.values() for finding in found]
    return Report(sections, answers, decide(every, answers, probed, cores()))


def decide(findings, answers, probed, count=2):
    """Return the `Readiness` that follows from these `findings`.

    `answers`: from NVML. `probed`: from MXNet's library. `count`: the number of cores.
    """
    bad = [finding for finding in findings if finding.state == BAD]
    if bad:
        return _not_yet(bad, answers, probed)
    if probed["gpus"]:
        text = f"The book runs on {_number(probed['gpus'])}."
        return Readiness(True, text, MAKE)
    return _on_cpu(answers, probed, count)


def _not_yet(bad, answers, probed):
    first, fit = bad[0], gpus.usable(answers)
    if probed.get("missing") and all(finding.advice == MAKE for finding in bad):
        place = f"GPUs, because of {fit[0].name}" if fit else "the CPU"
        text = f"The book cannot run yet: make will install it, for {place}."
        return Readiness(False, text, MAKE)
    text = f"The book cannot run yet: {first.topic}: {first.text}."
    return Readiness(False, text, first.advice)


def _on_cpu(answers, probed, count):
    contexts = "The book runs on CPU contexts"
    fit, unfit = gpus.usable(answers), gpus.unusable(answers)
    if fit and "CUDA" not in probed["features"]:
        text = f"{contexts}, because MXNet was installed for the CPU; here is a usable "
        return Readiness(True, f"{text}{fit[0].name}.", "make book DEVICE=gpu")
    if fit:
        text = f"{contexts}: MXNet sees none of the GPUs that the driver lists."
        return Readiness(True, text, MAKE)
    if unfit:
        return Readiness(True, f"{contexts}, not on {unfit[0]}.", MAKE)
    cores = "one core" if count == 1 else f"{count} cores"
    text = f"{contexts} ({cores}); there is no GPU that it could use."
    return Readiness(True, text, MAKE)


def _number(count):
    if count == 1:
        return "one GPU, and on CPU contexts where a chapter needs two devices"
    return f"{count} GPUs"
