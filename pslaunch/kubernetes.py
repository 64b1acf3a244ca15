"""The launcher `kubernetes`: one indexed Job of as many pods, made by `kubectl`.

    --launcher kubernetes --submit-args "--image registry/d2l_ext:1 --namespace team"

The pods' image holds this library and the command. The working directory must be in
them at the same path: in the image, or on a volume, which a pod template describes
(`--template FILE`, JSON: what a Job has as `spec.template`; name, image, command and
variables of its first container are filled in). Pods must reach this computer, where
the scheduler of the job runs: start the launcher in a pod of the cluster. The way to
the launcher is in a Secret; the Job and its Secret are deleted at the end, and the Job
an hour after it has finished, whatever became of the launcher.

The manifest is tested with the official schema of Kubernetes, and with a stand-in for
`kubectl` that runs the pods as processes. Not tested: a real cluster, its scheduling
and its network.
"""

import argparse
import json
import shlex
import subprocess
import sys
import time
from pathlib import Path

from . import submission, submitted
from .failures import Failed
from .proof import DOOR

LABEL = "d2l-ext-job"
#: How often, in seconds, pods are asked how they are, until all agents are here.
LOOK = 3.0


class _Parser(argparse.ArgumentParser):
    def error(self, message):
        raise ValueError(f"submit_args: {message}")


def options(plan):
    """What `--submit-args` says. Raises `ValueError`."""
    flags = _Parser(prog="--submit-args", add_help=False, allow_abbrev=False)
    flags.add_argument("--image", required=True)
    for name in ("namespace", "context", "template"):
        flags.add_argument(f"--{name}")
    return flags.parse_args(plan.where.submit_args)


def check(plan):
    """Raise `ValueError` when it can't be done: no kubectl, no image, ..."""
    submission.need("kubectl", "Kubernetes' command line (Debian: kubernetes-client)")
    submission.refuse(plan, "kubernetes", *submission.FOR_SSH)
    _template(options(plan).template)


root = submission.root


def _template(path):
    """A pod template with a container at least."""
    if path is None:
        return {"spec": {"containers": [{}]}}
    try:
        template = json.loads(Path(path).read_text(encoding="utf-8"))
        assert isinstance(template["spec"]["containers"][0], dict)
    except (OSError, ValueError, LookupError, TypeError, AssertionError,
            RecursionError):  # fmt: skip
        raise ValueError(f"template {path}: give a file in JSON, a pod template with "
                         "spec.containers") from None  # fmt: skip
    return template


def name(job):
    """Of the Job and of its Secret: a name may have letters, digits and hyphens."""
    return f"d2l-ext-{job[:20].lower()}"


def manifest(plan, job, invitation):
    """What is created: a dict, a list of a Secret and a Job."""
    labels, count = {LABEL: job}, submission.copies(plan)
    template = _template(options(plan).template)
    pod = template["spec"]
    pod["restartPolicy"] = "Never"
    pod.setdefault("automountServiceAccountToken", False)
    secret = {"name": DOOR, "valueFrom": {"secretKeyRef": {"name": name(job),
                                                           "key": "door"}}}
    own = pod["containers"][0]
    own.update(name="agent", image=options(plan).image, command=_agent(plan),
               env=[*own.get("env", []), secret])  # fmt: skip
    own.pop("args", None)
    meta = template.setdefault("metadata", {})
    meta["labels"] = {**meta.get("labels", {}), **labels}
    metadata = {"name": name(job), "labels": labels}
    return {"apiVersion": "v1", "kind": "List", "items": [
        {"apiVersion": "v1", "kind": "Secret", "metadata": metadata,
         "type": "Opaque", "immutable": True, "stringData": {"door": invitation}},
        {"apiVersion": "batch/v1", "kind": "Job", "metadata": metadata, "spec": {
            "completions": count, "parallelism": count, "completionMode": "Indexed",
            "backoffLimit": 0, "ttlSecondsAfterFinished": 3600,
            "template": template}},
    ]}  # fmt: skip


def _agent(plan):
    """In the image there is another Python, unless the user has named one."""
    words = submission.agent(plan, "JOB_COMPLETION_INDEX")
    return words if words[0] != sys.executable else ["python3", *words[1:]]


def kubectl(plan, *words):
    """A call of kubectl in the namespace of the job."""
    given = options(plan)
    return ["kubectl", *(f"--{flag}={getattr(given, flag)}"
            for flag in ("context", "namespace") if getattr(given, flag)), *words]


class Crew(submitted.Crew):
    """Agents in pods. `kubectl` ends when the Job is made; then its pods are asked."""

    tool, queue = "kubectl", "kubectl get pods"

    def words(self, plan, job):
        return kubectl(plan, "create", "-f", "-")

    def submit(self):
        self.next, self.troubles = time.monotonic() + LOOK, set()
        super().submit(json.dumps(manifest(self.plan, self.job, self.door.invitation)))

    def code(self):
        """Of kubectl, if it could not make the Job; pods that failed raise `Failed`."""
        code = self.process.poll()
        if code == 0 and time.monotonic() > self.next:
            self.next = time.monotonic() + LOOK
            self._ask()
        return code or None

    def _ask(self):
        pods = json.loads(self._kubectl("get", "pods", "-l", f"{LABEL}={self.job}",
                                        "-o", "json") or '{"items": []}')["items"]
        for pod in pods:
            who, status = pod["metadata"]["name"], pod.get("status", {})
            if status.get("phase") == "Failed":
                said = self._kubectl("logs", who, "--tail=5").strip()
                raise Failed(f"pod {who} failed: {said or status.get('reason', '')}")
            for container in status.get("containerStatuses", []):
                why = container.get("state", {}).get("waiting", {})
                text = f"pod {who}: {why.get('reason')} {why.get('message', '')}"
                if why.get("message") and text not in self.troubles:
                    self.troubles.add(text)
                    self.say(text.strip())

    def _kubectl(self, *words):
        done = subprocess.run(kubectl(self.plan, *words), check=False, text=True,
                              stdin=subprocess.DEVNULL, capture_output=True, timeout=20)
        return done.stdout

    def close(self):
        self.placed = None  # a Job stays until it is deleted
        super().close()

    @staticmethod
    def cancel(plan, job):
        return kubectl(plan, "delete", "job,secret", "-l", f"{LABEL}={job}",
                       "--wait=false")  # fmt: skip


def describe(plan):
    """What would be submitted: a list of lines."""
    text = json.dumps(manifest(plan, "JOB", "…"), indent=2, ensure_ascii=False)
    words = kubectl(plan, "create", "-f", "-")
    return [*submission.describe(plan, words, "a Secret"),
            f"what {shlex.quote(words[0])} reads:", text]  # fmt: skip
