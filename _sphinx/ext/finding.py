"""What the search page knows of the pages, beyond Sphinx's index.

Sphinx's index says on which pages a word occurs, not how often, and a browser that
reads the book from files may not open the pages for an excerpt. So `search_words.js`
holds, for each word, how often the chapters say it, and the first words of every page.
Newcomers ask in words that a chapter does not use: these are keywords of its page.
"""

import json
import re
from collections import Counter
from functools import lru_cache
from pathlib import Path

from docutils import nodes
from pages import first_words
from sphinx.search.en import SearchEnglish

FILE = "search_words.js"
#: In which words people look for what a page teaches, beside its own.
ASKED = {
    "chapters/devices/devices":
        "cpu gpu context async asynchronous lazy engine profiler",
    "chapters/devices/three_ways":
        "parallelism types kinds strategies overview which choose data model pipeline "
        "tensor difference between split across gpus",
    "chapters/devices/what_limits_a_step":
        "bottleneck memory bound compute bandwidth arithmetic intensity utilization "
        "mfu flops gpu low slow",
    "chapters/data_parallel/data_parallel_scratch":
        "ddp distributeddataparallel multi gpu multigpu pmap dataparallel distributed "
        "training split batch",
    "chapters/data_parallel/no_speed_up":
        "slow slower second gpu faster speedup speed scaling utilization idle multi "
        "gpus two multigpu dataloader bottleneck",
    "chapters/data_parallel/allreduce":
        "all reduce nccl gloo horovod collective communication gradients synchronize "
        "average",
    "chapters/data_parallel/halving": "butterfly recursive doubling rabenseifner tree",
    "chapters/data_parallel/overlap":
        "buckets ddp hide communication hooks backward bucketing",
    "chapters/data_parallel/concise":
        "gluon trainer split_and_load ddp api how to use multiple gpus mxnet",
    "chapters/data_parallel/large_batches":
        "learning rate scaling linear warmup lars lamb batch size increase accuracy "
        "drop generalization",
    "chapters/memory/where_memory_goes":
        "oom out of memory cuda gradient activation checkpointing remat "
        "rematerialization vram usage reduce recompute offload",
    "chapters/memory/half_precision":
        "bf16 bfloat16 fp16 float16 amp mixed precision autocast loss scaling "
        "gradient accumulation accumulate nan overflow underflow micro batch",
    "chapters/memory/sharded":
        "zero deepspeed fsdp fsdp2 fully sharded optimizer state stage oom out of "
        "memory partition fit shard model",
    "chapters/tensor_parallel/layerwise":
        "megatron column row parallel linear shard matrix gspmd sharding big layer",
    "chapters/tensor_parallel/transformer":
        "megatron llm gpt attention heads mlp sequence parallel large language model",
    "chapters/tensor_parallel/ring_attention":
        "context parallel long sequence flash flashattention length million tokens "
        "striped zigzag",
    "chapters/tensor_parallel/experts":
        "moe mixture of expert parallel router routing gshard switch capacity load "
        "balancing all to all alltoall",
    "chapters/pipeline/lstm_pipeline": "model parallel rnn group2ctx layers devices",
    "chapters/pipeline/where_to_cut": "balance stages partition split layers",
    "chapters/pipeline/micro_batches":
        "gpipe microbatch microbatches pipedream pipeline parallel parallelism 1f1b",
    "chapters/pipeline/shorter_bubbles":
        "zero bubble interleaved virtual dualpipe 1f1b idle",
    "chapters/pipeline/buckets": "variable length padding sequences bucketing",
    "chapters/meshes/mesh": "3d parallel parallelism devicemesh dp tp pp combine",
    "chapters/meshes/two_links":
        "hierarchical nvlink infiniband ethernet topology intra inter node",
    "chapters/kvstore/kvstore_by_hand": "parameter server push pull",
    "chapters/kvstore/roles_keys_shards": "parameter server scheduler worker dmlc",
    "chapters/kvstore/in_step": "parameter server synchronous dist_sync bsp",
    "chapters/kvstore/out_of_step":
        "hogwild asynchronous async sgd stale staleness dist_async ssp",
    "chapters/kvstore/compression":
        "quantization 1 bit 2 bit powersgd top k sparse error feedback compress "
        "gradients bandwidth",
    "chapters/kvstore/process_ring":
        "mpirun torchrun processes sockets gloo tcp all reduce parameter server",
    "chapters/kvstore/seldom":
        "diloco local sgd federated averaging fedavg slow internet",
    "chapters/clusters/launching":
        "slurm ssh mpi torchrun start cluster multi node multinode ctrl",
    "chapters/clusters/bad_networks": "latency packet loss wifi tcp slow ethernet",
    "chapters/clusters/recovery":
        "crash fault tolerance restart preemption spot failure hang killed worker "
        "dies resume elastic",
    "chapters/clusters/sharded_checkpoints":
        "save load checkpoint resume elastic resharding distributed other number gpus",
    "chapters/clinic/which_rank":
        "hang hangs stuck deadlock timeout nccl watchdog desync flight recorder "
        "torchfrtrace missing rank mismatch debug freeze training job",
    "chapters/clinic/wrong_numbers":
        "loss differs different between gpus wrong gradient mean sum batchnorm syncbn "
        "batch norm average",
    "chapters/clinic/parted_replicas":
        "drift diverge diverged seed seeds random weights differ different between "
        "gpus",
    "chapters/scale/fitting": "alpha beta model predict cost measure latency bandwidth",
    "chapters/scale/simulating": "simulator simulate event what if",
    "chapters/scale/scale":
        "need many gpus cost weak strong scaling amdahl gustafson efficiency "
        "thousands cluster",
    "chapters/scale/rosetta":
        "pytorch torch jax shard_map shard map pmap compare migrate translate "
        "equivalent",
    "chapters/scale/puzzles": "exercises challenge practice interview",
    "reference/gpu_box": "cuda install run google colab kaggle gpu driver",
    "reference/faq": "run google colab kaggle help error install windows mac",
    "reference/course":
        "lecture lectures slides teaching class students exercises solutions "
        "assignments",
}
WORD = re.compile(r"[^\W_]+")
#: Of the chapters that say a word, so many are kept, and a word that is said less than
#: `LEAST` times in each of them is not.
KEPT, LEAST = 4, 3


def words(text):
    return WORD.findall(text.lower())


def counted(texts, stem):
    """Return {stem: {page's number: percent of the most}} of `texts`, {page: text}."""
    tallies = [Counter(map(stem, words(text))) for text in texts.values()]
    found = {}
    for i, tally in enumerate(tallies):
        for word, count in tally.items():
            found.setdefault(word, Counter())[i] = count
    return {
        word: {i: round(100 * n / max(pages.values()))
               for i, n in pages.most_common(KEPT)}
        for word, pages in sorted(found.items())
        if max(pages.values()) >= LEAST
    }


def remember(app, doctree):
    """Keep the text and the first words of each page as it is read."""
    if not hasattr(app.env, "said_on_pages"):
        app.env.said_on_pages = {}
    app.env.said_on_pages[app.env.docname] = (doctree.astext(), first_words(doctree))
    if asked := ASKED.get(app.env.docname):  # Sphinx's index takes keywords, too
        doctree.insert(0, nodes.meta(name="keywords", content=", ".join(asked.split())))


def write(app, error):
    said = getattr(app.env, "said_on_pages", {})
    if error or app.builder.name != "html":
        return
    stem = lru_cache(maxsize=None)(SearchEnglish({}).stem)  # words recur
    chapters = {p: said[p][0] for p in sorted(said) if p.startswith("chapters/")}
    counts = counted(chapters, stem)
    asked = {page: sorted({stem(word) for word in ASKED.get(page, "").split()})
             for page in chapters}
    named = {word for words_of_one in asked.values() for word in words_of_one}
    spoken = {word for text in (*chapters.values(), *ASKED.values())
              for word in words(text)}
    stems = {word: stem(word) for word in sorted(spoken)
             if stem(word) != word and (stem(word) in counts or stem(word) in named)}
    held = {
        "pages": list(chapters), "counts": counts, "stems": stems,
        "titles": [app.env.titles[page].astext() for page in chapters],
        "asked": list(asked.values()),
        "excerpts": {page: first for page, (_, first) in sorted(said.items())},
    }
    text = json.dumps(held, separators=(",", ":"), ensure_ascii=False)
    (Path(app.outdir) / "_static" / FILE).write_text(
        f"window.SEARCH_WORDS={text};", encoding="utf-8"
    )


def on_search_page(app, pagename, templatename, context, doctree):
    if pagename == "search":
        app.add_js_file(FILE, priority=100)


def purge(app, env, docname):
    getattr(env, "said_on_pages", {}).pop(docname, None)


def merge(app, env, docnames, other):
    env.said_on_pages = {
        **getattr(env, "said_on_pages", {}), **getattr(other, "said_on_pages", {})
    }


def setup(app):
    app.connect("doctree-read", remember)
    app.connect("env-purge-doc", purge)
    app.connect("env-merge-info", merge)
    app.connect("html-page-context", on_search_page)
    app.connect("build-finished", write)
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
