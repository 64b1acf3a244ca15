"""Exercises of the chapter *Unreliable networks*."""

from ..question import Question, Task, by_cases, compared


class Server:
    """A total that counts each message once, by its worker and number."""

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


class _ByNumber(Server):
    def take(self, worker, number, value):
        super().take(0, number, value)


def _judge_server(kind, messages, right):
    server = kind()
    for message in messages:
        server.take(*message)
    wrong = f"the total is {server.total} instead of {right}."
    return "" if server.total == right else wrong


def seconds(sizes, mbit, workers, servers, ratio, pulls):
    """Return the seconds that the busier link takes: a server's or a worker's."""
    moved = 4 * sum(sizes) * (ratio + pulls)
    return 8 * moved * max(workers / servers, 1) / (mbit * 1e6)


QUESTIONS = {
    1: Question(
        "a time-out in milliseconds",
        3346,
        [
            (836, "That is one push alone. Four share the link."),
            (800, "That is one push alone. Four share the link."),
            (418, "A gigabit is not a gigabyte: a byte has eight bits."),
            (6691, "Only the pushes count: nothing has been pulled yet."),
        ],
        tolerance=0.05,
    ),
    2: Task(
        "a class `Server`",
        Server,
        [
            (_Adding, "A copy of a message is added again."),
            (_ByNumber, "Every worker has a message 0."),
            (_LastOnly, "A copy may come later than the next message: remember all."),
        ],
        judge=by_cases(_judge_server, "After {0}", [
            ([(0, 0, 3)], 3), ([(0, 0, 3), (1, 0, 4)], 7),
            ([(0, 0, 3), (1, 0, 4), (1, 0, 4)], 7), ([(0, 0, 3), (0, 1, 3)], 6),
            ([(0, 0, 3), (0, 1, 5), (0, 0, 3)], 8), ([(0, 1, 5), (0, 0, 3)], 8),
            ([(0, 2, 5), (1, 2, 5), (0, 0, 3), (1, 2, 5), (0, 2, 5)], 13),
            ([(1, 11, 3), (11, 1, 4), (2, 1, 5)], 12),
        ]),
    ),
    3: Question(
        "the number of servers",
        12,
        [
            (1, "One server moves the bytes of all twelve workers."),
            (6, "Then a server still moves twice as much as a worker."),
            (24, "Then the workers' links are the busiest. Fewer will do."),
        ],
    ),
    4: Task(
        "a function `seconds(sizes, mbit, workers, servers, ratio, pulls)`",
        seconds,
        [
            (lambda sizes, mbit, workers, servers, ratio, pulls:
             seconds(sizes, mbit, 1, 1, ratio, pulls),
             "Several workers share the link of a server."),
            (lambda *given: seconds(*given) / 8,
             "A link moves bits, and a byte has eight."),
            (lambda sizes, mbit, workers, servers, ratio, pulls:
             seconds(sizes, mbit, workers, servers, ratio, ratio * pulls),
             "Only pushes are compressed. Pulls are not."),
        ],
        judge=compared(seconds, [
            ([1000], 1, 1, 1, 1, 1), ([1000], 1, 2, 1, 1, 1), ([1000], 1, 2, 4, 1, 1),
            ([1000], 1, 3, 2, 1, 1), ([1000], 1, 4, 2, 1 / 16, 1),
            ([250_000, 10], 100, 2, 1, 1 / 16, 0.1),
        ], tolerance=1e-6),
    ),
}
