"""Exercises of the chapter *Roles, keys and shards*."""

from d2l_ext.kvstore import keys

from ..question import Note, Question, Task, by_cases, compared, shown


def sent(size, num_servers):
    """A push to each server that holds a shard, and a pull of it."""
    held = [n for n in keys.shards(0, size, num_servers, 1_000_000) if n]
    return [4 * n + 12 for n in held] + [8] * len(held)


def place(sizes, num_servers):
    """The largest first, each to the server that holds least so far."""
    held, servers = [0] * num_servers, [None] * len(sizes)
    for key in sorted(range(len(sizes)), key=lambda key: -sizes[key]):
        servers[key] = held.index(min(held))
        held[servers[key]] += sizes[key]
    return servers


def _judge_place(function, sizes, num_servers):
    placed = list(function(sizes, num_servers))
    if len(placed) != len(sizes):
        return f"it places {len(placed)} of {len(sizes)} arrays."
    if any(server not in range(num_servers) for server in placed):
        return f"{shown(placed)} are not all numbers of servers."
    most, enough = (
        max(sum(n for n, at in zip(sizes, servers) if at == s)
            for s in range(num_servers))
        for servers in (placed, place(sizes, num_servers))
    )
    if most > enough:
        return f"the fullest holds {most:,}, and {enough:,} will do."
    return Note(f"Of {sum(sizes):,} numbers, the fullest of {num_servers} servers "
                f"holds {most:,} ({enough:,} are enough).")


QUESTIONS = {
    1: Question(
        "a list of the numbers of servers",
        [5, *range(7, 17)],
        [
            ([5, 7, 11, 13], "It need not be a prime: try 8."),
            ([5, 7, 9, 11, 13, 15], "Some even numbers will do: try 8."),
            ([*range(4, 17)], "On four servers the keys 0 and 4 meet."),
            ([5, 6, *range(7, 17)], "On six servers the keys 0 and 6 meet."),
        ],
    ),
    2: Task(
        "a function that returns a list of bytes",
        sent,
        [
            ("keys.shards(0, size, num_servers, 1_000_000)", "[size]",
             "A large array is cut, and each server is sent its shard."),
            ("1_000_000", "1", "Small arrays are not cut: one server holds all."),
            ("1_000_000", "1_000_001", "An array of just the bound is cut already."),
            (" if n]", "]",
             "A server that holds nothing of the array is sent nothing."),
            ("4 * n + 12", "4 * n",
             "A push also says which key it is and how long: see the table."),
            ("4 * n + 12", "n + 12", "A number has 4 bytes."),
            ("4 * n + 12", "4 * n + 8", "A push has its key, and a length besides."),
            ("[8] * len(held)", "[8]",
             "Each server is asked for the shard that it holds."),
            (" + [8] * len(held)", "", "To pull, a worker sends a message, too."),
            ("[8] * len(held)", "[4 * n + 12 for n in held]",
             "What a pull brings is sent by the servers, and not by the worker."),
        ],
        judge=compared(sent, [
            (11, 1), (11, 2), (999_999, 2), (1_000_000, 2), (1_000_001, 5),
            (3_000_000, 3),
        ]),
    ),
    4: Task(
        "a function that returns a list with the server of each array",
        place,
        [
            (lambda sizes, num_servers: [k % num_servers for k in range(len(sizes))],
             "In turn, whatever the sizes: the large ones may meet."),
            ("+= sizes[key]", "+= 0",
             "All are on one server: what a server holds has to be counted."),
            ("sorted(range(len(sizes)), key=lambda key: -sizes[key])",
             "range(len(sizes))",
             "A large array that comes late finds no room that is left for it."),
            ("-sizes[key]", "sizes[key]",
             "Begin with the largest, and count elements, not arrays."),
            (lambda sizes, num_servers: place(sorted(sizes)[::-1], num_servers),
             "The list is in the order of placing. Expected: the order of the arrays."),
            ("servers[key] = held.index(min(held))",
             "servers[key] = held.index(min(held)); sizes.sort()",
             "Sort a copy: the caller needs the sizes as they are."),
            ("return servers", "return held",
             "That is what each server holds. Expected: the server of each array."),
        ],
        judge=by_cases(_judge_place, "Arrays of {} on {} servers", [
            ([5], 1), ([5, 1], 3), ([1, 2, 9], 2), ([7, 6, 5, 4, 3, 2], 3),
            ([180, 20, 25_000, 50, 102_400, 128, 1_280, 10], 2),  # LeNet's
        ]),
    ),
}
