"""The same exchange in PyTorch: an allreduce by gloo, in two processes of one thread.

    python gloo_step.py RANKS STEPS ELEMENTS      one flat array, as DDP's bucket

Prints the seconds of each step of the slower process, as JSON.
"""

import json
import os
import sys
import tempfile
from time import perf_counter

import torch
from torch import distributed, multiprocessing


def exchange(rank, ranks, steps, elements, folder):
    torch.set_num_threads(1)
    os.environ.setdefault("GLOO_SOCKET_IFNAME", "lo")
    meeting = f"file://{folder}/meeting"
    distributed.init_process_group(
        "gloo", init_method=meeting, rank=rank, world_size=ranks
    )
    gradient, seconds = torch.zeros(elements), []
    for _ in range(steps):
        distributed.barrier()
        begin = perf_counter()
        distributed.all_reduce(gradient)
        seconds.append(perf_counter() - begin)
    with open(f"{folder}/{rank}.json", "w", encoding="utf-8") as file:
        json.dump(seconds, file)
    distributed.destroy_process_group()


def main(ranks, steps, elements):
    with tempfile.TemporaryDirectory() as folder:
        multiprocessing.spawn(exchange, (ranks, steps, elements, folder), ranks)
        by_rank = []
        for rank in range(ranks):
            with open(f"{folder}/{rank}.json", encoding="utf-8") as file:
                by_rank.append(json.load(file))
    print(json.dumps([max(step) for step in zip(*by_rank)]))


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
