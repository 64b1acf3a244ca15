"""Exercises of the chapter *Roles, keys and shards*."""

from d2l_ext.kvstore import keys

from ..question import Note, Question, Task, by_cases, compared, shown


def sent(size, num_servers):
    """Return the bytes sent to each server with a shard: in a push, then in a pull."""
    held = [n for n in keys.shards(0, size, num_servers, 1_000_000) if n]
    pushes = [8 + 4 * n + 4 for n in held]
    pulls = [8] * len(held)
    return pushes + pulls


def place(sizes, num_servers):
    """Place the largest array first, each where the fewest elements are so far."""
    held, servers = [0] * num_servers, [None] * len(sizes)
    for key in sorted(range(len(sizes)), key=lambda key: -sizes[key]):
        servers[key] = held.index(min(held))
        held[servers[key]] += sizes[key]
    return servers


def _cut_from(bound):
    """Return `sent` with another bound of what is cut."""

    def sent_in_parts(size, num_servers):
        held = [n for n in keys.shards(0, size, num_servers, bound) if n]
        return [4 * n + 12 for n in held] + [8] * len(held)

    return sent_in_parts


def in_order(sizes, num_servers):
    held, servers = [0] * num_servers, []
    for size in sizes:
        servers.append(held.index(min(held)))
        held[servers[-1]] += size
    return servers


def _judge_place(function, sizes, num_servers):
    placed = list(function(sizes, num_servers))
    if len(placed) != len(sizes):
        return f"the number of entries is {len(placed)} instead of {len(sizes)}."
    if any(server not in range(num_servers) for server in placed):
        return f"{shown(placed)} contains something that is not the number of a server."
    most, enough = (
        max(sum(n for n, at in zip(sizes, servers) if at == s)
            for s in range(num_servers))
        for servers in (placed, place(sizes, num_servers))
    )
    if most > enough:
        return f"the fullest server holds {most:,} elements, but {enough:,} are enough."
    return Note(f"The fullest of {num_servers} servers holds {most:,} of "
                f"{sum(sizes):,} elements.")


QUESTIONS = {
    1: Question(
        "a list of the numbers of servers",
        [5, *range(7, 17)],
        [
            ([5, 7, 11, 13], "The number need not be a prime: try 8."),
            ([5, 7, 9, 11, 13, 15], "Some even numbers are right, too: try 8."),
            ([*range(4, 17)], "On four servers the keys 0 and 4 are together."),
            ([5, 6, *range(7, 17)], "On six servers the keys 0 and 6 are together."),
        ],
    ),
    2: Task(
        "a function `sent(size, num_servers)`",
        sent,
        [
            (lambda size, num_servers: [4 * size + 12, 8],
             "A large array is cut, and each server is sent its shard."),
            (_cut_from(1), "Small arrays are not cut: one server holds all."),
            (_cut_from(1_000_001), "An array of exactly the bound is cut."),
        ],
        judge=compared(sent, [
            (11, 1), (11, 2), (999_999, 2), (1_000_000, 2), (1_000_001, 2),
            (1_000_001, 5), (3_000_000, 3),
        ]),
    ),
    4: Task(
        "a function `place(sizes, num_servers)`",
        place,
        [
            (lambda sizes, num_servers:
             [key % num_servers for key in range(len(sizes))],
             "That deals them out in turn: two large arrays may meet."),
            (in_order,
             "A large array that comes late finds no empty server. Sort by size."),
            (lambda sizes, num_servers: place(sorted(sizes, reverse=True), num_servers),
             "The list is in the order of placing. Return it in the arrays' order."),
        ],
        judge=by_cases(_judge_place, "Arrays of {} on {} servers", [
            ([5], 1), ([5, 1], 3), ([4, 4, 4], 3), ([1, 2, 9], 2),
            ([7, 6, 5, 4, 3, 2], 3),
            ([180, 20, 25_000, 50, 102_400, 128, 1_280, 10], 2),  # LeNet's
        ]),
    ),
}
