"""A figure says where it comes from: the machine, the versions, the commit."""

import re
import subprocess
from datetime import datetime

from played_machine import GIT

import d2l_ext  # noqa: F401  (before mxnet)
from bookkit.provenance import commit, provenance


def test_provenance_names_date_commit_versions_processor_and_cores():
    facts = provenance()
    assert datetime.fromisoformat(facts["date"])
    assert facts["commit"] is None or re.search(r"[0-9a-f]{7}", facts["commit"])
    assert facts["mxnet"] == "1.9.1"
    assert facts["cores"] >= 1
    assert facts["processor"]


def test_a_commit_is_dirty_where_its_folder_was_changed_and_not_beside_it(tmp_path):
    library, outputs = tmp_path / "library", tmp_path / "outputs"
    for folder in (library, outputs):
        folder.mkdir()
        (folder / "file").write_text("old")
    for words in (["init", "-q"], ["add", "."], ["commit", "-qm", "all"]):
        subprocess.run([*GIT, *words], cwd=tmp_path, check=True)
    clean = commit(library)
    assert re.fullmatch("[0-9a-f]{7,}", clean)
    (outputs / "file").write_text("new")
    assert commit(library) == clean
    (library / "new").write_text("a module that git does not know")
    assert commit(library) == commit(tmp_path) == clean + "-dirty"


def test_provenance_has_no_commit_where_there_is_no_git(monkeypatch):
    monkeypatch.setenv("PATH", "")
    assert provenance()["commit"] is None
