"""One step of a decoder's block that is divided over its heads, in JAX: a program.

    python jax_heads_steps.py sharded problem.npz found.npz

Needs JAX and NumPy, and nothing of this book: it runs in an interpreter of its own.
After the weights it writes the output, the gradient of the input, and those of the
weights.

Developed in the chapter *A Transformer over its heads*.
"""

import sys
from functools import partial

import jax
import jax_steps
from jax import numpy as jnp
from jax.sharding import Mesh, NamedSharding, PartitionSpec

WHOLE, COLUMNS = PartitionSpec(), PartitionSpec(None, "model")
ROWS = PartitionSpec("model", None)
CUT = [WHOLE, WHOLE, COLUMNS, ROWS, WHOLE, WHOLE, COLUMNS, ROWS]


def sharded(problem):
    """Only the weights say that they are cut; the compiler adds the parts."""
    mesh = Mesh(jax.devices(), ("model",))
    X, y, params, lr = jax_steps._prepare(problem)
    params = [jax.device_put(p, NamedSharding(mesh, c)) for p, c in zip(params, CUT)]
    return _step(partial(block, d=_columns_of_a_head(problem)), params, X, y, lr)


def summed(problem):
    """The same with the two sums written out: `psum` over the devices."""
    X, y, params, lr = jax_steps._prepare(problem)
    own = partial(block, d=_columns_of_a_head(problem),
                  collect=lambda part: jax.lax.psum(part, "model"))
    mesh = Mesh(jax.devices(), ("model",))
    divided = jax.shard_map(own, mesh=mesh, in_specs=(CUT, WHOLE), out_specs=WHOLE)
    return _step(divided, params, X, y, lr)


def block(params, x, d, collect=lambda part: part):
    """Norm, causal attention, norm, MLP of `x` (T, batch, width), with these heads."""
    gain1, shift1, qkv, out, gain2, shift2, up, down = params
    h = (norm(x, gain1, shift1) @ qkv).reshape(*x.shape[:2], -1, 3, d)
    queries, keys, values = jnp.moveaxis(h, 3, 0)  # (T, batch, heads, d)
    scores = jnp.einsum("tbhd,sbhd->bhts", queries, keys) * d**-0.5
    earlier = jnp.tril(jnp.ones((len(x), len(x)), bool))
    shares = jax.nn.softmax(jnp.where(earlier, scores, -1e9))
    mixed = jnp.einsum("bhts,sbhd->tbhd", shares, values)
    x = x + collect(mixed.reshape(*x.shape[:2], -1) @ out)
    hidden = jax.nn.gelu(norm(x, gain2, shift2) @ up, approximate=False)
    return x + collect(hidden @ down)


def norm(x, gain, shift):
    """Layer normalization over the last axis."""
    away = x - x.mean(-1, keepdims=True)
    return away * jax.lax.rsqrt((away**2).mean(-1, keepdims=True) + 1e-5) * gain + shift


def _step(forward, params, X, y, lr):
    def loss(params, X):
        out = forward(params, X)
        return ((out - y) ** 2).sum(-1).mean() / 2, out

    both = jax.jit(jax.value_and_grad(loss, (0, 1), has_aux=True))
    (_, out), (gradients, dX) = both(params, X)
    after = [p - lr * g for p, g in zip(params, gradients)]
    return [*after, out, dX, *gradients]


def _columns_of_a_head(problem):
    return problem["X"].shape[-1] // int(problem["heads"])


jax_steps.STEPS.update(sharded=sharded, summed=summed)

if __name__ == "__main__":
    jax_steps.main(*sys.argv[1:])
