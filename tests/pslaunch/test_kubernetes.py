"""The launcher `kubernetes`: its manifest by the official schema, its job with a
stand-in for kubectl and the cluster, `stand_ins/kubectl`. No real cluster."""

import json
import os
import signal
import subprocess
from pathlib import Path

import jsonschema
import pytest
from job_checks import CLI, JOBS, PYTHON, nodes_of, nothing_left, wait_for  # noqa: F401
from trained import TRAIN, local_weights, weights

import pslaunch as launch
from pslaunch import kubernetes, plan

STAND_INS = Path(__file__).with_name("stand_ins")
SCHEMA = json.loads(Path(__file__).with_name("kubernetes_schema.json").read_text())
KINDS = {"Secret": "io.k8s.api.core.v1.Secret", "Job": "io.k8s.api.batch.v1.Job"}
JOB = "0123456789abcdef0123456789abcdef"
#: A pod template as a user would write it.
TEMPLATE = {"metadata": {"labels": {"team": "a"}}, "spec": {
    "nodeSelector": {"gpu": "yes"},
    "volumes": [{"name": "work", "persistentVolumeClaim": {"claimName": "work"}}],
    "containers": [{"env": [{"name": "T_OWN", "value": "1"}], "args": ["dropped"],
                    "volumeMounts": [{"name": "work", "mountPath": "/work"}],
                    "resources": {"limits": {"cpu": "2"}}}]}}  # fmt: skip


@pytest.fixture
def folder(monkeypatch, tmp_path):
    """The stand-in's folder; kubectl is the stand-in, and images have this Python."""
    own = os.path.dirname(PYTHON)
    monkeypatch.setenv("PATH", f"{STAND_INS}:{own}:{os.environ['PATH']}")
    monkeypatch.setenv("T_KUBERNETES", str(tmp_path / "kubernetes"))
    (tmp_path / "kubernetes").mkdir()
    return tmp_path / "kubernetes"


def run(command, **options):
    return launch.run(command, launcher="kubernetes", interface="lo",
                      submit_args=["--image", "book"], **options)  # fmt: skip


def manifest(*submit_args, workers=2, servers=1):
    made = plan.make(["x"], workers, servers, launcher="kubernetes",
                     submit_args=["--image", "r/b:1", *submit_args])  # fmt: skip
    return kubernetes.manifest(made, JOB, "10.0.0.1:99:secret")


def check(document):
    """Each part has all fields, and no others, with the types that the API wants."""
    for item in document["items"]:
        schema = {**SCHEMA, "$ref": f"#/$defs/{KINDS[item['kind']]}"}
        jsonschema.Draft7Validator(schema).validate(item)


# ---- The description of the job ----


def test_the_manifest_is_what_the_schema_of_kubernetes_wants(folder, tmp_path):
    path = tmp_path / "template.json"
    path.write_text(json.dumps(TEMPLATE))
    for document in (manifest(), manifest("--template", str(path), workers=500)):
        check(document)
    with pytest.raises(jsonschema.ValidationError, match="'completion' was unexpected"):
        document["items"][1]["spec"]["completion"] = 3
        check(document)


def test_a_job_has_a_pod_for_each_server_and_worker_and_tries_none_again(folder):
    spec = manifest(workers=5, servers=2)["items"][1]["spec"]
    assert (spec["completions"], spec["parallelism"]) == (7, 7)
    assert (spec["completionMode"], spec["backoffLimit"]) == ("Indexed", 0)
    assert spec["template"]["spec"]["restartPolicy"] == "Never"
    assert spec["template"]["spec"]["automountServiceAccountToken"] is False


def test_the_secret_is_in_the_secret_alone(folder):
    secret, job = manifest()["items"]
    assert secret["stringData"] == {"door": "10.0.0.1:99:secret"}
    assert "99:secret" not in json.dumps(job)
    (variable,) = job["spec"]["template"]["spec"]["containers"][0]["env"]
    reference = variable["valueFrom"]["secretKeyRef"]
    assert reference == {"name": secret["metadata"]["name"], "key": "door"}


def test_a_template_keeps_what_it_says_of_pods(folder, tmp_path):
    path = tmp_path / "template.json"
    path.write_text(json.dumps(TEMPLATE))
    template = manifest("--template", str(path))["items"][1]["spec"]["template"]
    assert template["metadata"]["labels"] == {"team": "a", kubernetes.LABEL: JOB}
    assert template["spec"]["nodeSelector"] == {"gpu": "yes"}
    (container,) = template["spec"]["containers"]
    assert container["volumeMounts"] == [{"name": "work", "mountPath": "/work"}]
    assert [v["name"] for v in container["env"]] == ["T_OWN", "D2L_EXT_DOOR"]
    assert container["image"] == "r/b:1" and "args" not in container
    assert container["command"][:3] == ["python3", "-m", "pslaunch.dial"]


@pytest.mark.parametrize("submit_args, text", [
    ([], "required: --image"),
    (["--image", "a", "--gpus", "2"], "unrecognized arguments: --gpus 2"),
    (["--image", "a", "--template", "/none"], "template /none: give a file in JSON"),
])  # fmt: skip
def test_wrong_submit_args_are_named(submit_args, text, folder):
    with pytest.raises(ValueError, match=text):
        plan.make(["x"], 1, 1, launcher="kubernetes", submit_args=submit_args)


@pytest.mark.parametrize(
    "text", ["[" * 100_000, "{}", '{"spec": {"containers": {}}}'],
    ids=["nested", "empty", "no list"],
)  # fmt: skip
def test_a_template_that_is_none_is_named(text, folder, tmp_path):
    file = tmp_path / "pod.json"
    file.write_text(text)
    with pytest.raises(ValueError, match="pod.json: give a file in JSON, a pod temp"):
        manifest("--template", str(file))


def test_a_dry_run_prints_the_manifest_without_the_secret(folder):
    argv = ["-n", "2", "--launcher", "kubernetes", "--dry-run", "--submit-args",
            "--image a:1 --namespace n --context c", "x"]  # fmt: skip
    done = subprocess.run([*CLI, *argv], check=True, capture_output=True, text=True)
    assert "  kubectl --context=c --namespace=n create -f -\n" in done.stdout
    document = json.loads(done.stdout[done.stdout.index("\n{") :])
    check(document)
    assert document["items"][0]["stringData"] == {"door": "…"}
    assert not list(folder.iterdir()), "nothing was made"


# ---- With the stand-in ----


def test_a_job_in_pods_ends_with_the_weights_of_this_machine(folder, tmp_path):
    job = run([*TRAIN, "--save-prefix", str(tmp_path / "pods")], num_workers=2)
    assert job.returncode == 0, job.cause
    assert (weights(tmp_path / "pods") == local_weights(tmp_path)).all()
    check(json.loads((folder / "manifest.json").read_text()))
    assert (folder / "deleted").exists()


def test_a_pod_that_cannot_begin_fails_the_job_with_its_last_lines(folder):
    """As one that has no way to the launcher: here, without this library."""
    job = run(["x"], python="/usr/bin/false")
    assert job.returncode == 1
    assert "pod pod-0 failed" in job.cause
    assert (folder / "deleted").exists()


def test_why_pods_wait_is_said(folder, monkeypatch):
    monkeypatch.setenv("T_PULL", "fails")
    job = run(["x"], deadline=5)
    assert job.returncode == 124
    assert [n for n in job.notes if "pod-" in n] == [
        f"pod pod-{number}: ErrImagePull no such image" for number in range(3)]


@pytest.mark.parametrize("signum", [signal.SIGINT, signal.SIGKILL])
def test_a_launcher_that_is_ended_deletes_the_job(signum, folder, nothing_left):  # noqa: F811
    launcher = subprocess.Popen(
        [*CLI, "-n", "1", "-s", "1", "--launcher", "kubernetes", "--interface", "lo",
         "--submit-args=--image a", PYTHON,
         str(JOBS / "steps.py")],
        stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)  # fmt: skip
    wait_for(lambda: ("worker", 0) in nodes_of(nothing_left))
    launcher.send_signal(signum)
    launcher.wait(30)
    wait_for(lambda: (folder / "deleted").exists(), 15)
