"""What a program asks of a kvstore: each call and its key, written down."""

from contextlib import contextmanager

#: The calls that move arrays, and the one that moves the optimizer.
METHODS = ("init", "broadcast", "push", "pull", "pushpull", "row_sparse_pull",
           "set_optimizer")  # fmt: skip


@contextmanager
def record(kv):
    """Write down the calls of the kvstore `kv` inside the `with` block.

        with store_calls.record(kv) as calls:
            trainer.step(64)
        assert calls == ["pushpull 0", "pushpull 1"]

    Yields a list of texts, a method's name and the key; `set_optimizer` has none. A
    call on several keys is one text. The calls go on to the store as they are.

    Developed in the chapter *The store by hand*.
    """
    calls = []
    for name in METHODS:
        setattr(kv, name, _recorded(getattr(kv, name), name, calls))
    try:
        yield calls
    finally:
        for name in METHODS:
            delattr(kv, name)  # the method of the class shows again


def _recorded(method, name, calls):
    def call(*args, **options):
        key = args[0] if args else options.get("key")
        calls.append(name if name == "set_optimizer" else f"{name} {key}")
        return method(*args, **options)

    return call
