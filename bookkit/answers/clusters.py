"""Answers to exercises of the part on clusters."""

from .question import Question

QUESTIONS = {
    ("launching", 4): Question(
        "the exit code of the job",
        7,
        [
            (0, "That is what `launch.py` returns."),
            (1, "The book's launcher hands on the code of what failed first."),
        ],
    ),
    ("bad_networks", 1): Question(
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
    ("bad_networks", 3): Question(
        "a number of servers",
        12,
        [
            (1, "One server moves the bytes of all twelve workers."),
            (6, "Then a server still moves twice as much as a worker."),
            (24, "Then the workers' links are the busiest. Fewer will do."),
        ],
    ),
    ("recovery", 1): Question(
        "the minutes between two checkpoints, with 64 machines",
        24.4,
        [
            (196, "That is for one machine. Any of 64 can stop the job."),
            (12, "That is with 256 machines."),
            (1464, "These are seconds."),
        ],
        tolerance=0.03,
    ),
}
