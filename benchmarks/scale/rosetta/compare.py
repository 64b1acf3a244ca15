"""The same step in three frameworks: how far the weights are apart afterwards."""

from functools import partial

from . import mxnet_steps, problems
from .peers import digest, largest_difference, step, versions

#: Technique to: the problem, MXNet's step, other ways in MXNet, and the peers' steps.
TECHNIQUES = {
    "data": (problems.lenet, mxnet_steps.scratch, {"Gluon": mxnet_steps.trainer},
             [("torch", "plain"), ("torch", "ddp"), ("jax", "plain"),
              ("jax", "sharded"), ("jax", "summed")]),
    "pipeline": (problems.blocks, mxnet_steps.pipeline, {},
                 [("torch", "pipeline"), ("jax", "pipeline")]),
    "layer": (problems.block, mxnet_steps.tensor_split, {},
              [("torch", "tensor_parallel"), ("jax", "tensor_parallel")]),
    "sharded": (problems.sharded, mxnet_steps.sharded,
                {name: partial(mxnet_steps.sharded, shard=name)
                 for name in ("none", "states", "gradients")},
                [("torch_sharded", "replicas"), ("torch_sharded", "zero1"),
                 ("torch_sharded", "fsdp2"), ("jax_sharded", "fsdp")]),
    "heads": (problems.heads, mxnet_steps.heads,
              {"one device": partial(mxnet_steps.heads, num_devices=1)},
              [("torch_heads", "parallelize_module"), ("jax_heads", "sharded"),
               ("jax_heads", "summed")]),
}
NAMES = {"torch": "PyTorch", "jax": "JAX", "torch_sharded": "PyTorch",
         "jax_sharded": "JAX", "torch_heads": "PyTorch",
         "jax_heads": "JAX"}


def with_peers(technique):
    """Take the step in every framework, and compare the weights afterwards.

    With `heads`, the output and all gradients are compared as well.

    `technique`: one of `TECHNIQUES`. Returns `differences`, the
    largest from MXNet's weights, relative to each array's largest value, as in
    `{"PyTorch ddp": 1e-7, …}`; `moved`, how far the step itself went, which tells
    what a difference means; the `versions` of the peers; and the digest of their
    `code`, as in `{"torch": "5d6c…", …}`.
    """
    make, ours, others, peers = TECHNIQUES[technique]
    problem = make()
    weights = ours(problem)
    before = [problem[f"p{i}"] for i in range(problems.count(problem))]
    found = {name: other(problem) for name, other in others.items()}
    for framework, name in peers:
        found[f"{NAMES[framework]} {name}"] = step(framework, name, problem)
    differences = {k: largest_difference(weights, w) for k, w in found.items()}
    return {"differences": differences, "versions": versions(),
            "code": {f: digest(f) for f in dict(peers)},
            "moved": largest_difference(before, weights[: len(before)])}
