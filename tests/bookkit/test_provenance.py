"""A figure says where it comes from: the machine, the versions, the commit."""

import re
import subprocess
from datetime import datetime

import pytest
from played_machine import GIT

import d2l_ext  # noqa: F401  (before mxnet)
from bookkit.provenance import _processor, commit, provenance


def test_provenance_names_date_commit_versions_processor_and_cores():
    facts = provenance()
    assert datetime.fromisoformat(facts["date"])
    assert facts["commit"] is None or re.search(r"[0-9a-f]{7}", facts["commit"])
    assert facts["mxnet"] == "1.9.1"
    assert facts["cores"] >= 1
    assert facts["processor"]


def test_provenance_is_printed_as_one_line():
    facts = provenance()
    facts.update(
        date="2026-11-02", commit="abc1234", processor="A <B>", gpus=0, cores=2
    )
    line = "Run on 2 November 2026 at commit abc1234, with MXNet 1.9.1 and Python "
    assert repr(facts).startswith(line)
    assert ", on A <B> with 2 cores and no GPU; OMP_NUM_THREADS=" in repr(facts)
    assert "on A &lt;B&gt; with" in facts._repr_html_()
    facts.update(gpus=1, cores=1)
    assert " with 1 core and 1 GPU; " in repr(facts)
    facts.update(gpus=2)
    assert " and 2 GPUs; " in repr(facts)


@pytest.mark.parametrize("name, shown", [
    ("AMD EPYC", "AMD EPYC (family 26, model 2)"),
    ("AMD EPYC 7763 64-Core Processor", "AMD EPYC 7763 64-Core Processor"),
])
def test_a_processor_whose_name_has_no_number_is_named_by_family_and_model(
        name, shown, tmp_path):
    file = tmp_path / "cpuinfo"
    file.write_text(f"cpu family\t: 26\nmodel\t\t: 2\nmodel name\t: {name}\n\n")
    assert _processor(file) == shown


def commit_all(folder):
    for words in (["init", "-q"], ["add", "."], ["commit", "-qm", "all"]):
        subprocess.run([*GIT, *words], cwd=folder, check=True)


def test_a_commit_is_dirty_where_its_folder_was_changed_and_not_beside_it(tmp_path):
    library, outputs = tmp_path / "library", tmp_path / "outputs"
    for folder in (library, outputs):
        folder.mkdir()
        (folder / "file").write_text("old")
    commit_all(tmp_path)
    clean = commit(library)
    assert re.fullmatch("[0-9a-f]{7,}", clean)
    (outputs / "file").write_text("new")
    assert commit(library) == clean
    (library / "new").write_text("a module that git does not know")
    assert commit(library) == commit(tmp_path) == clean + "-dirty"


def test_a_folder_that_its_repository_ignores_has_no_commit(tmp_path):
    """Such as a virtual environment in a project of the reader's."""
    (tmp_path / ".gitignore").write_text("library\n")
    (tmp_path / "library").mkdir()
    (tmp_path / "library/file").write_text("new")
    commit_all(tmp_path)
    assert commit(tmp_path / "library") is None


def test_provenance_has_no_commit_where_there_is_no_git(monkeypatch):
    monkeypatch.setenv("PATH", "")
    assert provenance()["commit"] is None
