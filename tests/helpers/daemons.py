"""A scheduler's own daemons on the hosts of a box."""

from contextlib import contextmanager


@contextmanager
def starting(folder, env):
    """Yields `start(host, *command)`; what it has started is ended with the block.

    Each daemon has the environment `env`, and a log in `folder`.
    """
    started = []

    def start(host, *command):
        words = list(map(str, command))
        name = words[0].rpartition("/")[2]
        with open(folder / f"{name}-{host.name}.log", "w") as log:
            started.append(host.popen(words, env=env, stdout=log, stderr=log,
                                      cwd=folder))

    try:
        yield start
    finally:
        for process in started:
            process.kill()
        for process in started:
            process.wait()
