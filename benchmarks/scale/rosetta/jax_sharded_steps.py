"""Five steps of Adam with divided weights and states, in JAX: run as a program.

    python jax_sharded_steps.py fsdp problem.npz weights.npz

Needs JAX and NumPy, and nothing of this book: it runs in an interpreter of its own.

Developed in the chapter *Sharded data parallelism*.
"""

import sys

import jax
import jax_steps
from jax import numpy as jnp
from jax.sharding import Mesh, NamedSharding, PartitionSpec

STEPS, EPSILON = 5, 1e-12


def fsdp(problem):
    """Only the arrays say that they are divided; the compiler gathers and scatters."""
    X, y, params, lr = jax_steps._prepare(problem)
    mesh = Mesh(jax.devices(), ("shard",))
    divided = NamedSharding(mesh, PartitionSpec("shard"))
    X, y, params = jax.device_put((X, y, params), divided)
    zeros = jax.tree.map(jnp.zeros_like, params)
    state = (params, zeros, zeros)
    step = jax.jit(adam, out_shardings=divided)
    for t in range(1, STEPS + 1):
        state = step(*state, X, y, lr, t)
        for p in jax.tree.leaves(state):  # it stays divided
            assert 2 * p.addressable_shards[0].data.size == p.size
    return state[0]


def adam(params, means, squares, X, y, lr, t):
    gradients = jax.grad(loss)(params, X, y)
    means = [0.9 * m + 0.1 * g for m, g in zip(means, gradients)]
    squares = [0.999 * v + 0.001 * g * g for v, g in zip(squares, gradients)]
    rate = lr * jnp.sqrt(1 - 0.999**t) / (1 - 0.9**t)
    params = [p - rate * m / (jnp.sqrt(v) + EPSILON)
              for p, m, v in zip(params, means, squares)]
    return params, means, squares


def loss(params, X, y):
    """Half the squared distance, mean over the examples."""
    return jax_steps.second_loss(params, X, y) / len(X)


jax_steps.STEPS["fsdp"] = fsdp

if __name__ == "__main__":
    jax_steps.main(*sys.argv[1:])
