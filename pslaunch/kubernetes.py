"""The launcher `kubernetes`: one indexed Job of as many pods, made by `kubectl`.

    --launcher kubernetes --submit-args "--image registry/d2l_ext:1 --namespace team"

Tried against a stand-in only, never a cluster: the manifest holds to the schema of
Kubernetes, and a stand-in for `kubectl` runs the pods as processes.

The pods' image holds this library and the command. The working directory must be in
them at the same path: in the image, or on a volume, which a pod template describes
(`--template FILE`, JSON: what a Job has as `spec.template`; name, image, command and
variables of its first container are filled in). Pods must reach this computer, where
the scheduler of the job runs: start the launcher in a pod of the cluster. The way to
the launcher is in a Secret; the Job and its Secret are deleted at the end, and the Job
an hour after it has finished, whatever became of the launcher.
"""

import argparse
import json
import sys
from pathlib import Path

from . import submitted
from .door import DOOR
from .job import Failed

LABEL = "d2l-ext-job"


class _Parser(argparse.ArgumentParser):
    def error(self, message):
        raise ValueError(f"submit_args: {message}")


def options(plan):
    """What `--submit-args` says; its `template` is read. Raises `ValueError`."""
    flags = _Parser(prog="--submit-args", add_help=False, allow_abbrev=False)
    flags.add_argument("--image", required=True)
    for name in ("namespace", "context", "template"):
        flags.add_argument(f"--{name}")
    given = flags.parse_args(plan.settings.submit_args)
    text = '{"spec": {"containers": [{}]}}'
    try:
        if given.template:
            text = Path(given.template).read_text(encoding="utf-8")
        template = json.loads(text)
        if not isinstance(template["spec"]["containers"][0], dict):
            raise TypeError
    except (OSError, ValueError, LookupError, TypeError, RecursionError):
        raise ValueError(f"template {given.template}: give a file in JSON, a pod "
                         "template with spec.containers") from None
    given.template = template
    return given


def manifest(plan, job, invitation):
    """What is created: a dict, a list of a Secret and a Job."""
    given, count = options(plan), submitted.copies(plan)
    labels = {LABEL: job}
    metadata = {"name": f"d2l-ext-{job[:20].lower()}", "labels": labels}
    door = {"name": metadata["name"], "key": "door"}
    # In the image there is another Python, unless the user has named one.
    python, *words = submitted.agent(plan, "JOB_COMPLETION_INDEX")
    python = "python3" if python == sys.executable else python
    template, pod = given.template, given.template["spec"]
    pod["restartPolicy"] = "Never"
    pod.setdefault("automountServiceAccountToken", False)
    own = pod["containers"][0]
    own.pop("args", None)
    own.update(name="agent", image=given.image, command=[python, *words], env=[
        *own.get("env", []), {"name": DOOR, "valueFrom": {"secretKeyRef": door}}])
    of_pods = template.setdefault("metadata", {})
    of_pods["labels"] = {**of_pods.get("labels", {}), **labels}
    return {"apiVersion": "v1", "kind": "List", "items": [
        {"apiVersion": "v1", "kind": "Secret", "metadata": metadata,
         "type": "Opaque", "immutable": True, "stringData": {"door": invitation}},
        {"apiVersion": "batch/v1", "kind": "Job", "metadata": metadata, "spec": {
            "completions": count, "parallelism": count, "completionMode": "Indexed",
            "backoffLimit": 0, "ttlSecondsAfterFinished": 3600,
            "template": template}},
    ]}


def kubectl(plan, *words):
    """A call of kubectl in the namespace of the job."""
    given = vars(options(plan))
    flags = [f"--{name}={given[name]}" for name in ("context", "namespace")
             if given[name]]
    return ["kubectl", *flags, *words]


class Crew(submitted.Crew):
    """Agents in pods. `kubectl` ends when the Job is made; then its pods are asked."""

    tool, queue, goes_along = "kubectl", "kubectl get pods", "a Secret"
    stays = False
    package = "Kubernetes' command line (Debian: kubernetes-client)"

    @classmethod
    def check(cls, plan):
        super().check(plan)
        options(plan)

    @staticmethod
    def words(plan, job):
        return kubectl(plan, "create", "-f", "-")

    @classmethod
    def describe(cls, plan):
        text = json.dumps(manifest(plan, "JOB", "…"), indent=2, ensure_ascii=False)
        return [*super().describe(plan), "what kubectl reads:", text]

    def hand_over(self):
        self.troubles = set()
        return json.dumps(manifest(self.plan, self.job, self.door.invitation))

    def ask(self):
        """Pods that failed end the job; why others wait is said."""
        wanted = ("-l", f"{LABEL}={self.job}", "-o", "json")
        told = submitted.answer(kubectl(self.plan, "get", "pods", *wanted))
        for pod in json.loads(told or '{"items": []}')["items"]:
            self._look_at(pod["metadata"]["name"], pod.get("status", {}))

    def _look_at(self, pod, status):
        if status.get("phase") == "Failed":
            logs = kubectl(self.plan, "logs", pod, "--tail=5")
            said = submitted.answer(logs).strip()
            raise Failed(f"pod {pod} failed: {said or status.get('reason', '')}")
        for container in status.get("containerStatuses", []):
            why = container.get("state", {}).get("waiting", {})
            text = f"pod {pod}: {why.get('reason')} {why.get('message', '')}".strip()
            if why.get("message") and text not in self.troubles:
                self.troubles.add(text)
                self.say(text)

    @staticmethod
    def cancel(plan, job):
        return kubectl(plan, "delete", "job,secret", "-l", f"{LABEL}={job}",
                       "--wait=false")
