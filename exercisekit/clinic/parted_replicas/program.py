"""The patient: training on two devices, with a restart. Each case changes one line."""

from numpy.random import RandomState

from .tools import allreduce, clip, copied, global_norm, initial, summed


def train(X, y, devices, log, saved, first, last):
    replicas = [copied(saved or initial(seed=0)) for i, _ in enumerate(devices)]
    for step in range(first, last):
        lr = 0.2 * 0.9**step
        epoch, batch = divmod(step, len(X) // 32)
        order = RandomState(epoch).permutation(len(X))
        rows = order[32 * batch : 32 * batch + 32]
        shards = [rows[:20], rows[20:]]
        found = [summed(w, X[r], y[r], d) for w, r, d in zip(replicas, shards, devices)]
        loss = sum(total for total, _ in found) / len(rows)
        gradients = [[g / len(rows) for g in own] for _, own in found]
        allreduce(gradients)
        norm = global_norm(gradients, copies=2)
        clip(gradients, norm, limit=0.8)
        log(step, rows, shards, replicas, gradients, lr, loss, norm)
        for weights, own in zip(replicas, gradients):
            for w, g in zip(weights, own):
                w -= lr * g
        saved[:] = copied(replicas[0])
