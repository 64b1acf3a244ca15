"""The sentence at the end: can the book run here, on what, and what comes next?"""

from dataclasses import dataclass

from d2l_ext.devices.gpus import unusable, usable

from .finding import BAD
from .python import MAKE


@dataclass(frozen=True)
class Verdict:
    """`runs`: whether the book can run. `next`: the command to type now."""

    runs: bool
    text: str
    next: str


def decide(findings, answers, probed, count=2):
    """Return the `Verdict` on these `findings`.

    `answers`: NVML's. `probed`: what MXNet's library said of itself. `count`: how
    many cores there are.
    """
    bad = [finding for finding in findings if finding.state == BAD]
    if bad:
        return _not_yet(bad, answers, probed)
    if probed["gpus"]:
        text = f"The book runs on {_number(probed['gpus'])}."
        return Verdict(True, text, MAKE)
    return _on_cpu(answers, probed, count)


def _not_yet(bad, answers, probed):
    first, fit = bad[0], usable(answers)
    if probed.get("missing") and all(finding.advice == MAKE for finding in bad):
        place = f"GPUs, because of {fit[0].name}" if fit else "the CPU"
        text = f"The book cannot run yet: make will install it, for {place}."
        return Verdict(False, text, MAKE)
    text = f"The book cannot run yet: {first.topic}: {first.text}."
    return Verdict(False, text, first.advice)


def _on_cpu(answers, probed, count):
    contexts = "The book runs on CPU contexts"
    fit, unfit = usable(answers), unusable(answers)
    if fit and "CUDA" not in probed["features"]:
        text = f"{contexts}, because MXNet was installed for the CPU; here is a usable "
        return Verdict(True, f"{text}{fit[0].name}.", "make book DEVICE=gpu")
    if fit:
        text = f"{contexts}: MXNet sees none of the GPUs that the driver lists."
        return Verdict(True, text, MAKE)
    if unfit:
        return Verdict(True, f"{contexts}, not on {unfit[0]}.", MAKE)
    cores = "one core" if count == 1 else f"{count} cores"
    text = f"{contexts} ({cores}); there is no GPU that it could use."
    return Verdict(True, text, MAKE)


def _number(gpus):
    if gpus == 1:
        return "one GPU, and on CPU contexts where a chapter needs two devices"
    return f"{gpus} GPUs"
