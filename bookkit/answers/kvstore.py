"""Answers to exercises of the part on the kvstore."""

from .question import Question

QUESTIONS = {
    ("kvstore_by_hand", 1): Question(
        "the number that is stored in the end",
        5,
        [
            (15, "That is the sum: the third push found it there."),
            (9, "That is the last push: an updater was not set, or assigns."),
            (6, "The mean of 3 and 9: the first two pushes must count twice as much."),
        ],
    ),
    ("kvstore_by_hand", 2): Question(
        "a list of two numbers of bytes: dense, row-sparse",
        [4_000_000, 64 * 408],
        [
            ([4_000_000, 64 * 400], "It also stores which rows it has."),
            ([4_000_000, 64 * 404], "The number of a row has 8 bytes."),
            ([1_000_000, 6_400], "These are numbers; each has 4 bytes."),
        ],
    ),
    ("kvstore_by_hand", 4): Question(
        "the size that a step must exceed",
        2**-12,
        [
            (2**-10, "That is eps, the distance just above 1. What is it below?"),
            (2**-11, "That is the distance just below 1. Half is enough."),
            (2**-13, "A step of this size is rounded away."),
        ],
        tolerance=0.005,
    ),
    ("roles_keys_shards", 1): Question(
        "a list of the numbers of servers",
        [5, *range(7, 17)],
        [
            ([5, 7, 11, 13], "It need not be a prime: try 8."),
            ([5, 7, 9, 11, 13, 15], "Some even numbers will do: try 8."),
            ([*range(4, 17)], "On four servers the keys 0 and 4 meet."),
            ([5, 6, *range(7, 17)], "On six servers the keys 0 and 6 meet."),
        ],
    ),
    ("roles_keys_shards", 2): Question(
        "a list: the messages that the worker sends, and the bytes in them",
        [6, 12_000_060],
        [
            ([2, 12_000_020], "Each of the three servers gets a message of its own."),
            ([6, 12_000_000], "Keys and lengths are sent, too: look at the table."),
            ([6, 12_000_036], "Asking for a pull takes bytes, too."),
            ([3, 12_000_036], "To pull, the worker must ask: that is a message, too."),
        ],
    ),
    ("sync_async", 1): Question(
        "a list of the divisors, step by step",
        [3, 3, 1],
        [
            ([1, 1, 1], "The sum is over all workers, and so is the divisor."),
            ([3, 3, 3], "In the last step only one example is left."),
            ([3, 3], "The seventh example has a step, too."),
        ],
    ),
    ("sync_async", 3): Question(
        "the staleness with four workers",
        3,
        [
            (4, "A worker's own update does not count."),
            (0, "The others push between its pull and its push."),
            (1, "Each of the others pushes once."),
        ],
    ),
    ("sync_async", 5): Question(
        "a list of three times in seconds",
        [3 - 2 * 0.9**n for n in (1, 4, 16)],
        [
            ([1.2, 1.2, 1.2], "That is a worker's mean. All wait for the slowest."),
            ([1.2, 4.8, 19.2], "They compute at the same time: nothing adds up."),
            ([3, 3, 3], "With some luck all are quick. How often?"),
        ],
        tolerance=0.01,
    ),
    ("compression", 1): Question(
        "the length of the message in bytes",
        250_004,
        [
            (250_000, "What becomes of the last three weights?"),
            (250_001, "The message is made of whole words of 4 bytes."),
            (62_501, "These are words of 4 bytes."),
            (4_000_012, "That is without compression."),
        ],
    ),
    ("compression", 3): Question(
        "what is left over, in the units of the gradient",
        30,
        [
            (0.3, "That is left after one step, and kept for the next."),
            (0, "The sender can send no more than the threshold in a step."),
            (80, "That is all that there was. What has been sent?"),
            (50, "That has been sent. What is left of 80?"),
        ],
        tolerance=0.005,
    ),
    ("compression", 4): Question(
        "a bandwidth in Gbit/s",
        8 / (0.011 / (32e6 - 1.5 * 17e6)) / 1e9,
        [
            (0.59, "That is in gigabytes: a byte has eight bits."),
            (2.36, "Two workers share the link."),
        ],
        tolerance=0.02,
    ),
}
