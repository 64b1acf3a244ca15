"""What JAX inserts: run by the Python of `.venv-bench`, reads cases, writes counts."""

import json
import os
import re
import sys
from collections import Counter

os.environ["XLA_FLAGS"] = "--xla_force_host_platform_device_count=8"
os.environ["JAX_PLATFORMS"] = "cpu"

import jax
import jax.numpy as jnp
import numpy
from jax.sharding import Mesh, NamedSharding, PartitionSpec

KINDS = "all-reduce", "all-gather", "reduce-scatter", "all-to-all", "collective-permute"
#: A collective's result, an array or several in brackets, and its kind.
FOUND = re.compile(r" = (.*?) (" + "|".join(KINDS) + r")(?:-start)?\(")


def norm(x, gain, shift):
    x = x - x.mean(-1, keepdims=True)
    return x / jnp.sqrt((x * x).mean(-1, keepdims=True) + 1e-5) * gain + shift


LOCAL = {"relu": jax.nn.relu, "softmax": jax.nn.softmax, "norm": norm,
         "embedding": lambda ids, table: table[ids]}


def sharding(mesh, text):
    words = [None if word == "." else word for word in text.split()]
    return NamedSharding(mesh, PartitionSpec(*words))


def compiled(text, shapes, sizes, where, weights):
    """Return the text of the compiled program."""
    devices = numpy.array(jax.devices()).reshape(*sizes.values())
    mesh = Mesh(devices, tuple(sizes))  # axes that the compiler may use as it likes
    lies = {name: [sharding(mesh, part) for part in said.split("->")]
            for name, said in where.items()}
    lines = [line.split() for line in text.splitlines() if line.strip()]

    def put(name, x, places):
        for place in lies.get(name, [])[places]:
            x = jax.lax.with_sharding_constraint(x, place)
        return x

    def forward(given):
        env = {name: put(name, x, slice(1, None)) for name, x in given.items()}
        for name, _, kind, spec, *inputs in lines:
            xs = [env[x] for x in inputs]
            if kind in ("einsum", "add"):
                out = jnp.einsum(spec, *xs) if kind == "einsum" else xs[0] + xs[1]
            else:
                out = LOCAL[kind](*xs)
            env[name] = put(name, out, slice(None))
        return env[lines[-1][0]]

    used = {x for line in lines for x in line[4:]}
    kinds = {"ids": jnp.int32}
    arrays = {name: jax.ShapeDtypeStruct(tuple(shape), kinds.get(name, jnp.float32))
              for name, shape in shapes.items() if name in used}
    whole = {name: sharding(mesh, "") for name in shapes}
    at_rest = {name: lies.get(name, [whole[name]])[0] for name in arrays}
    end = lies[lines[-1][0]][-1]
    if not weights:
        step = jax.jit(forward, in_shardings=(at_rest,), out_shardings=end)
        return step.lower(arrays).compile().as_text()

    def step(held, fixed, seed):
        out, back = jax.vjp(lambda held: forward({**held, **fixed}), held)
        return out, back(seed)[0]

    held = {name: arrays[name] for name in weights}
    fixed = {name: x for name, x in arrays.items() if name not in weights}
    out = jax.eval_shape(forward, arrays)
    places = [{name: at_rest[name] for name in own} for own in (held, fixed)]
    step = jax.jit(step, in_shardings=(*places, end), out_shardings=(end, places[0]))
    seed = jax.ShapeDtypeStruct(out.shape, out.dtype)
    return step.lower(held, fixed, seed).compile().as_text()


def main():
    cases = json.load(sys.stdin)
    rows = {name: FOUND.findall(compiled(*case)) for name, case in cases.items()}
    json.dump({
        "jax": jax.__version__,
        "counts": {name: Counter(kind for _, kind in row)
                   for name, row in rows.items()},
        "arrays summed": {
            name: sum(result.count("[") for result, kind in row if kind == "all-reduce")
            for name, row in rows.items()},
    }, sys.stdout)


if __name__ == "__main__":
    main()
