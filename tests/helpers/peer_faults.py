# ruff: noqa: E501  a fault is a line
"""Forty faults in the programs of the tabs: which of them does `make peers` notice?

    python tests/helpers/peer_faults.py           all, some minutes
    python tests/helpers/peer_faults.py 0 5 7     some, by their place in the list

Each fault is put into a copy of a program, which then runs as in `make peers`. Needs
PyTorch and JAX. Exit code 1 when a fault was not noticed.
"""

import shutil
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from tempfile import TemporaryDirectory

sys.path.insert(0, str(Path(__file__).parents[2]))

import d2l_ext  # noqa: F401  (before mxnet, see d2l_ext.runtime)
import peers
from peers import __main__ as runner

#: What is wrong, in which program, what stands there, and what stands there instead.
FAULTS = [
    ("no sum", "data_parallel/step_torch", "        dist.all_reduce(p.grad)\n", ""),
    ("mean for sum", "data_parallel/step_jax", "lax.psum(own", "lax.pmean(own"),
    ("divides by the own share", "data_parallel/step_torch", "/ len(X)", "/ len(own_X)"),
    ("stale import", "data_parallel/step_jax", "@jax.shard_map(",
     "from jax.experimental.maps import xmap\n@jax.shard_map("),
    ("everyone the same share", "data_parallel/ddp_torch", "y.chunk(k)[rank]", "y.chunk(k)[0]"),
    ("sum for mean", "data_parallel/ddp_torch", ".backward()", ".mul(k).backward()"),
    ("no replica", "data_parallel/ddp_torch", "replica(own_X)", "net(own_X)"),
    ("sum for mean", "data_parallel/ddp_jax", "gradients = jax.grad(mean_loss)(params, X, y)",
     "gradients = [2 * g for g in jax.grad(mean_loss)(params, X, y)]"),
    ("a round too few", "data_parallel/ring_torch", "range(k - 1):  # allgather", "range(k - 2):  # allgather"),
    ("the other way round", "data_parallel/ring_jax", "(i + 1) % k) for", "(i - 1) % k) for"),
    ("product for sum", "data_parallel/allreduce_torch", "ReduceOp.SUM", "ReduceOp.PRODUCT"),
    ("a sum twice", "data_parallel/allreduce_jax", 'return jax.lax.psum(own, "device")',
     'return jax.lax.psum(jax.lax.psum(own, "device") / 4, "device")'),
    ("wrong partner", "data_parallel/halving_torch", "swap(give, rank ^ d)", "swap(give, rank ^ 1)"),
    ("the wrong half", "data_parallel/halving_jax", "jnp.where(me & d, other, own), jnp.where(me & d, own, other)",
     "own, other"),
    ("wrong group", "meshes/hierarchy_torch", "all_reduce(part, group=between)", "all_reduce(part, group=inside)"),
    ("wrong axis", "meshes/hierarchy_jax", 'psum(part, "between")', 'psum(part, "inside")'),
    ("no second level", "meshes/hierarchy_torch", "dist.all_reduce(part, group=between)\n", ""),
    ("whole world for a group", "meshes/mesh_torch", ', group=mesh.get_group("data")', ""),
    ("batch not cut", "meshes/mesh_jax", 'P("data")))', "P()))"),
    ("columns for rows", "tensor_parallel/layerwise_torch", '"2": RowwiseParallel()', '"2": ColwiseParallel()'),
    ("weights not cut", "tensor_parallel/layerwise_jax", 'cut = P(None, "model"), P("model"), P("model", None), P()',
     "cut = P(), P(), P(), P()"),
    ("no sum", "tensor_parallel/heads_torch", "\ndist.all_reduce(y)", ""),
    ("not causal", "tensor_parallel/heads_jax", "is_causal=True", "is_causal=False"),
    ("keys and values stay", "tensor_parallel/ring_attention_torch", "        KV = arriving\n", ""),
    ("owner of another round", "tensor_parallel/ring_attention_jax", "(me - r) % k", "(me - r + 1) % k"),
    ("no way back", "tensor_parallel/experts_torch", "dist.all_to_all_single(back, done, give, take)", "back = done[: len(X)]"),
    ("the first expert only", "tensor_parallel/experts_jax", "gates.argmax(-1)", "gates.argmin(-1)"),
    ("drift of one worker", "kvstore/local_sgd_torch", "    dist.all_reduce(start.grad)\n", ""),
    ("sum of drifts", "kvstore/local_sgd_jax", "lax.pmean(start - W", "lax.psum(start - W"),
    ("no momentum", "memory/fsdp_torch", ", momentum=0.875", ""),
    ("layers not divided", "memory/fsdp_torch", "for layer in net:\n    fully_shard(layer)\n", ""),
    ("sends at every piece", "memory/accumulate_torch", "nullcontext() if is_last else replica.no_sync()", "nullcontext()"),
    ("no warm scale", "memory/loss_scaling_torch", "growth_interval=2", "growth_interval=3"),
    ("rate of the batch", "data_parallel/lars_torch", "w.grad *= w.norm()", "w.grad /= w.norm()"),
    ("single precision sent", "kvstore/half_torch", "replica.register_comm_hook(None, default_hooks.fp16_compress_hook)\n", ""),
    ("nothing exchanged", "meshes/ulysses_torch", "dist.all_to_all_single(arriving, parts)", "arriving.copy_(parts)"),
    ("a sum that stays owed", "meshes/layouts_torch", "x + y.redistribute(placements=ROWS)", "x + y.to_local()[: len(x) // 4]"),
    ("a sum of norms", "clinic/global_norm_jax", "jnp.sqrt(sum(jnp.square(g).sum() for g in gradients))",
     "sum(jnp.sqrt(jnp.square(g).sum()) for g in gradients)"),
    ("positions in another order", "tensor_parallel/context_parallel_torch", "enable_load_balance = False", "enable_load_balance = True"),
    ("weight forgotten", "data_parallel/unequal_torch", "(mean * k * len(X) / share.item())", "mean"),
]


def noticed(root, fault):
    """The sentence with which a fault is refused, or None."""
    _, program, old, new = fault
    name, _, framework = program.rpartition("_")
    with TemporaryDirectory() as folder:
        copy = Path(folder) / "peers"
        part = Path(name).parent
        shutil.copytree(root / part, copy / part)
        path = peers.program(name, framework, copy)
        text = path.read_text("utf-8")
        if old not in text:
            raise ValueError(f"{program} has no {old!r}")
        path.write_text(text.replace(old, new, 1), "utf-8")
        try:
            runner.checked(name, framework, REFERENCES[name], copy)
        except (runner.Different, subprocess.SubprocessError) as error:
            return str(error).splitlines()[0] + str(error).splitlines()[-1][-80:]
    return None


REFERENCES = {}  # what the chapters' programs make


def tried(fault):
    """Whether a fault was noticed; prints what became of it."""
    what, program, *_ = fault
    said = noticed(peers.ROOT, fault)
    print(f"{'noticed' if said else 'MISSED ':8} {program:36} {what}: {said}", flush=True)
    return bool(said)


def main(*numbers):
    """Try the faults, or those of these `numbers`; 1 if one was not noticed."""
    faults = [FAULTS[int(n)] for n in numbers] or FAULTS
    for name in {program.rpartition("_")[0] for _, program, *_ in faults}:
        REFERENCES[name] = runner.ours(name)
    with ThreadPoolExecutor(3) as pool:
        found = list(pool.map(tried, faults))
    print(f"{sum(found)} of {len(found)} noticed")
    return int(not all(found))


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
