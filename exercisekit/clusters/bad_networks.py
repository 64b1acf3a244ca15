"""Exercises of the chapter *Unreliable networks*."""

from ..question import Question, Task, by_cases, compared


class Server:
    """Adds each message once: remembers them by worker and number."""

    def __init__(self):
        self.total, self.seen = 0, set()

    def take(self, worker, number, value):
        message = worker, number
        if message not in self.seen:
            self.seen.add(message)
            self.total += value


class _Adding(Server):
    def take(self, worker, number, value):
        self.total += value


class _LastOnly(Server):
    def take(self, worker, number, value):
        self.seen &= {(worker, number)}
        super().take(worker, number, value)


def _tells_apart(by):
    """A server that distinguishes messages by `by(worker, number, value)`."""

    class Wrong(Server):
        def take(self, *message):
            super().take(by(*message), 0, message[-1])

    return Wrong


def _judge_server(kind, messages, right):
    server = kind()
    for message in messages:
        server.take(*message)
    wrong = f"the total is {server.total}, not {right}."
    return "" if server.total == right else wrong


def seconds(sizes, mbit, workers, servers, ratio, pulls):
    """The time of the busier link: a server's or a worker's."""
    moved = 4 * sum(sizes) * (ratio + pulls)
    return 8 * moved * max(workers / servers, 1) / (mbit * 1e6)


def _times(bits=32, moved=lambda ratio, pulls: ratio + pulls,
           busier=lambda workers, servers: max(workers / servers, 1)):
    """The function `seconds` with one factor as a learner might write it."""

    def made(sizes, mbit, workers, servers, ratio, pulls):
        shares = sum(sizes) * moved(ratio, pulls) * busier(workers, servers)
        return bits * shares / (mbit * 1e6)

    return made


QUESTIONS = {
    1: Question(
        "a time-out in milliseconds",
        3346,
        [
            (836, "That is one push alone. Four share the link."),
            (800, "That is one push alone. Four share the link."),
            (418, "A gigabit is not a gigabyte: a byte has eight bits."),
            (6691, "Only the way to the server counts: nothing is pulled yet."),
        ],
        tolerance=0.05,
    ),
    2: Task(
        "a class whose objects add up what they take",
        Server,
        [
            (_Adding, "A copy of a message is added again."),
            (_tells_apart(lambda worker, number, value: number),
             "Two workers both have a message 0."),
            (_tells_apart(lambda worker, number, value: (worker, value)),
             "Two messages may have the same value: their number tells them apart."),
            (_LastOnly, "A copy may come later than the next message: remember all."),
        ],
        judge=by_cases(_judge_server, "After {0}", [
            ([(0, 0, 3)], 3), ([(0, 0, 3), (1, 0, 4)], 7),
            ([(0, 0, 3), (1, 0, 4), (1, 0, 4)], 7), ([(0, 0, 3), (0, 1, 3)], 6),
            ([(0, 0, 3), (0, 1, 5), (0, 0, 3)], 8), ([(0, 1, 5), (0, 0, 3)], 8),
            ([(0, 2, 5), (1, 2, 5), (0, 0, 3), (1, 2, 5), (0, 2, 5)], 13),
        ]),
    ),
    3: Question(
        "a number of servers",
        12,
        [
            (1, "One server moves the bytes of all twelve workers."),
            (6, "Then a server still moves twice as much as a worker."),
            (24, "Then the workers' links are the busiest. Fewer will do."),
        ],
    ),
    4: Task(
        "a function that returns seconds",
        seconds,
        [
            (_times(busier=lambda workers, servers: workers / servers),
             "With many servers, the workers' own links are the busier ones."),
            (_times(busier=lambda workers, servers: 1),
             "Several workers share the link of a server."),
            (_times(bits=4), "A link moves bits, and a byte has eight."),
            (_times(bits=8), "A float32 has 4 bytes."),
            (_times(moved=lambda ratio, pulls: ratio * (1 + pulls)),
             "Only pushes are compressed. Pulls are not."),
            (_times(moved=lambda ratio, pulls: ratio + 1),
             "The weights are not pulled after each push."),
        ],
        judge=compared(seconds, [
            ([1000], 1, 1, 1, 1, 1), ([1000], 1, 2, 1, 1, 1), ([1000], 1, 2, 4, 1, 1),
            ([1000], 1, 4, 2, 1 / 16, 1), ([250_000, 10], 100, 2, 1, 1 / 16, 0.1),
        ], tolerance=1e-6),
    ),
}
