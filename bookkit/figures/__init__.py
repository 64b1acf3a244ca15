"""Figures of the chapters: interactive ones, and charts of what a job did.

| file | holds |
|---|---|
| `frame` | what interactive figures share: controls, the page, the script's engine |
| `data_parallel_step` | split, copy, forward, backward, allreduce, update |
| `allreduce_ways` | star, tree, ring and halving side by side: the messages per round |
| `ring_allreduce` | which sums each device holds, and what it has sent |
| `ring_rounds` | ring attention: where keys are, which devices compute and which wait |
| `pipeline_schedule` | GPipe, 1F1B and those with shorter bubbles, slot by slot |
| `device_mesh` | a mesh that turns: the groups of a device, and its bytes |
| `shard_memory` | the memory of each device in each of ZeRO's stages |
| `server_traffic` | workers and servers, message by message; `ps_run` computes it |
| `cost_calculator` | a step's time and efficiency, by the formulas of `d2l_ext.scale` |
| `fits` | does a model fit, and how fast: memory and time of a step on a mesh |
| `one_setting` | two timelines, one line of Python apart, on the first page |
| `ps_chart` | the start of a job and a step of it, from the logs of its processes |
| `recovery_chart` | the steps of a job that was started again |

An interactive figure is inline SVG with a few controls, which needs no network and no
kernel. It is two files: `NAME.py` with its controls and the library's numbers, and
`NAME.js`, which draws every state and describes it in words. The script runs in the
reader's page and, for what is stored and printed, in an engine that Python embeds, so
nothing is drawn twice. `shapes.js` lists its functions.
"""
