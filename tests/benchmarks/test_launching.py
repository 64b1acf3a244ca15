"""Jobs on the hosts of a box, for the chapter *Launching jobs*."""

from benchmarks.clusters.launching import jobs
from netbox import machine


def test_without_rsync_the_jobs_say_what_to_install(monkeypatch):
    find = machine.find
    monkeypatch.setattr(machine, "find", lambda name: name != "rsync" and find(name))
    assert "install Debian's rsync" in jobs.why_not()
