"""A store without servers that writes down what it is asked, and who waited when."""

import mxnet as mx
from mxnet import npx


class RecordedStore(mx.kv.KVStoreBase):
    """What worker `rank` has of a job's store: calls are noted, and nothing moves."""

    type = rank = num_workers = None

    def __init__(self, type="dist_sync", rank=0, num_workers=2):
        self.type, self.rank, self.num_workers, self.calls = type, rank, num_workers, []

    @staticmethod
    def is_capable(capability):
        return True

    def set_optimizer(self, optimizer):
        self.calls.append("set_optimizer")

    def _barrier(self):
        self.calls.append("barrier")


def _noted(name):
    def call(self, key, *_, **__):
        self.calls.append(f"{name} {key}")

    return call


for name in ("init", "broadcast", "push", "pull", "pushpull"):
    setattr(RecordedStore, name, _noted(name))


def note_waits(monkeypatch, calls):
    """Write the waits for MXNet's engine among the calls."""
    for module in (mx.nd, npx):
        monkeypatch.setattr(module, "waitall", lambda: calls.append("wait"))
