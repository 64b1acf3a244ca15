"""What the workflows and containers promise, as far as it shows without running them.

`make lint-workflows` checks them with tools made for it.
"""

import json
import re
from pathlib import Path

import pytest
import yaml

ROOT = Path(__file__).resolve().parents[2]
FILES = sorted((ROOT / ".github" / "workflows").glob("*.yml"))
CONTAINERS = (ROOT / "containers" / "Containerfile").read_text()

workflows = pytest.mark.parametrize("file", FILES, ids=lambda file: file.stem)


def read(file):
    """Return a workflow; its key `on`, a boolean in YAML 1.1, is a word again."""
    workflow = yaml.safe_load(file.read_text())
    workflow["on"] = workflow.pop(True)
    return workflow


def steps(workflow):
    return [step for job in workflow["jobs"].values() for step in job["steps"]]


@workflows
def test_actions_are_pinned_by_commit_and_their_version_is_noted(file):
    for line in file.read_text().splitlines():
        if "uses:" in line:
            assert re.search(r"@[0-9a-f]{40} # v\d+\.\d+\.\d+$", line), line


def test_an_action_has_one_version_in_all_workflows():
    pinned = re.findall(r"uses: (\S+)@(\S+)", "".join(f.read_text() for f in FILES))
    assert len(dict(pinned)) == len(set(pinned))


@workflows
def test_nothing_is_permitted_but_what_a_job_names(file):
    workflow = read(file)
    assert workflow["permissions"] == {}
    for name, job in workflow["jobs"].items():
        allowed = {"contents": "read"}
        if name == "publish":
            allowed = {"pages": "write", "id-token": "write"}
        assert job["permissions"] == allowed, name


@workflows
def test_only_pages_of_main_are_published(file):
    for name, job in read(file)["jobs"].items():
        if "write" in job["permissions"].values():
            assert (file.stem, name) == ("cpu", "publish")
            assert "github.ref == 'refs/heads/main'" in job["if"]
            assert "github.event_name == 'push'" in job["if"]


@workflows
def test_the_token_is_not_left_in_the_checkout(file):
    checkouts = [s for s in steps(read(file)) if "checkout@" in s.get("uses", "")]
    assert all(step["with"]["persist-credentials"] is False for step in checkouts)


@workflows
def test_no_run_outlives_its_use(file):
    workflow = read(file)
    assert "group" in workflow["concurrency"]
    assert all(job["timeout-minutes"] <= 240 for job in workflow["jobs"].values())


@workflows
def test_pull_requests_run_without_the_rights_of_the_repository(file):
    assert not {"pull_request_target", "workflow_run"} & set(read(file)["on"])


@workflows
def test_a_box_of_ones_own_is_never_started_by_a_pull_request(file):
    workflow = read(file)
    for job in workflow["jobs"].values():
        if "self-hosted" in job["runs-on"]:
            assert set(workflow["on"]) == {"schedule", "workflow_dispatch"}
            assert job["if"] == "vars.GPU_BOX == 'true'"


@workflows
def test_no_expression_is_pasted_into_a_script(file):
    assert not any("${{" in step.get("run", "") for step in steps(read(file)))


@workflows
def test_every_command_exists(file):
    makefile = (ROOT / "Makefile").read_text()
    for step in steps(read(file)):
        for target in re.findall(r"\bmake ([a-z-]+)", step.get("run", "")):
            assert re.search(rf"^{target}:", makefile, re.MULTILINE), target
        for module in re.findall(r"python -m ([\w.]+)", step.get("run", "")):
            path = ROOT / module.replace(".", "/")
            assert path.is_dir() or path.with_suffix(".py").is_file(), module


@pytest.mark.parametrize(("file", "job"), [("cpu", "test"), ("weekly", "rebuild")])
def test_every_supported_python_is_tested(file, job):
    text = (ROOT / "pyproject.toml").read_text()
    lowest, end = re.search(r'">=3\.(\d+),<3\.(\d+)"', text).groups()
    tested = read(FILES[0].with_stem(file))["jobs"][job]
    assert tested["strategy"]["matrix"]["python"] == [
        f"3.{minor}" for minor in range(int(lowest), int(end))]  # fmt: skip
    used = [step.get("with", {}).get("python-version") for step in tested["steps"]]
    assert "${{ matrix.python }}" in used


def test_the_containers_begin_with_an_image_that_cannot_change():
    first, *others = re.findall(r"^FROM (\S+) AS \w+$", CONTAINERS, re.MULTILINE)
    assert re.search(r":\S+@sha256:[0-9a-f]{64}$", first)
    assert set(others) == {"base"}


def test_no_container_runs_as_root():
    for stage in CONTAINERS.split("\nFROM ")[1:]:
        users = re.findall(r"^USER (\S+)$", stage, re.MULTILINE)
        assert users[-1:] in ([], ["1000"]), stage.splitlines()[0]


def test_the_dev_container_names_what_the_container_file_has():
    definition = ROOT / ".devcontainer" / "devcontainer.json"
    dev = json.loads(definition.read_text())
    build = dev["build"]
    assert (definition.parent / build["dockerfile"]).resolve().is_file()
    assert re.search(rf"^FROM \S+ AS {build['target']}$", CONTAINERS, re.MULTILINE)
    assert f"--uid 1000 {dev['remoteUser']}" in CONTAINERS
