"""Exercises of the chapter *Unreliable networks*."""

from ..question import Question, Task, by_cases, compared


class Server:
    """Remembers which messages it has, by worker and number."""

    def __init__(self):
        self.total, self.seen = 0, set()

    def take(self, worker, number, value):
        message = worker, number
        self.total += value * (message not in self.seen)
        self.seen.add(message)


def _judge_server(kind, messages, right):
    server = kind()
    for message in messages:
        server.take(*message)
    wrong = f"the total is {server.total}, not {right}."
    return "" if server.total == right else wrong


def seconds(sizes, mbit, workers, servers, ratio, pulls):
    """What the busier link moves: a server's or a worker's."""
    moved = 4 * sum(sizes) * (ratio + pulls)
    return 8 * moved * max(workers / servers, 1) / (mbit * 1e6)


QUESTIONS = {
    1: Question(
        "a time-out in milliseconds",
        3346,
        [
            (836, "That is one push by itself. Four share the link."),
            (800, "That is one push by itself. Four share the link."),
            (418, "A gigabit is not a gigabyte: a byte has eight bits."),
            (6691, "A message goes one way: nothing is pulled yet."),
        ],
        tolerance=0.05,
    ),
    2: Task(
        "a class whose objects add up what they take",
        Server,
        [
            ("(message not in self.seen)", "1", "A copy of a message is added again."),
            ("worker, number\n", "number\n", "Two workers both have a message 0."),
            ("worker, number\n", "worker, value\n",
             "Two messages may have the same value: their number tells them apart."),
            ("worker, number\n", "worker\n", "A worker has more than one message."),
            ("self.seen.add(message)", "self.seen = {message}",
             "A copy may come later than the next message: remember all."),
            ("(message not in self.seen)",
             "all(m < message for m in self.seen if m[0] == worker)",
             "They come in any order: a lower number may be new."),
            ("value * (", "(", "That counts the messages. Their values are added up."),
            ("):\n        self.total, self.seen = 0, set()",
             ", seen=set()):\n        self.total, self.seen = 0, seen",
             "Two servers share one memory: make it in `__init__`."),
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
            ("max(workers / servers, 1)", "workers / servers",
             "With many servers, the workers' own links are the busier ones."),
            ("max(workers / servers, 1)", "1",
             "Several workers share the link of a server."),
            ("max(workers / servers, 1)", "workers",
             "The servers share the arrays among them."),
            ("8 * moved", "moved", "A link moves bits, and a byte has eight."),
            ("4 * sum(sizes)", "sum(sizes)", "A number of float32 has 4 bytes."),
            ("(ratio + pulls)", "ratio * (1 + pulls)",
             "Only what is pushed is compressed. What is pulled is not."),
            ("(ratio + pulls)", "(ratio + 1)",
             "The weights are not pulled after each push."),
            ("(ratio + pulls)", "ratio", "Weights are pulled, too."),
            ("1e6", "2**20", "A megabit is a million bits."),
            ("sum(sizes)", "max(sizes)", "All the arrays are moved, not one."),
        ],
        judge=compared(seconds, [
            ([1000], 1, 1, 1, 1, 1), ([1000], 1, 2, 1, 1, 1), ([1000], 1, 2, 4, 1, 1),
            ([1000], 1, 4, 2, 1 / 16, 1), ([250_000, 10], 100, 2, 1, 1 / 16, 0.1),
        ], tolerance=1e-6),
    ),
}
