"""Interactive figures: inline SVG, a few controls, no network and no kernel.

| module | holds |
|---|---|
| `frame` | what all figures share: controls, drawing, words, script |
| `shapes` | boxes, words and arrows, drawn in Python as in the page's script |
| `data_parallel_step` | split, copy, forward, backward, allreduce, update |
| `ring_allreduce` | which sums each device holds, and what it has sent |
| `pipeline_schedule` | GPipe and 1F1B, slot by slot |
| `server_traffic` | workers and servers, message by message; `ps_run` computes it |
| `cost_calculator` | a step's time and efficiency, by the formulas of `cost_model` |

A figure is three files: `NAME.py` with its controls and data, `NAME_svg.py` with the
functions that draw it and say it in words, and `NAME.js` with their twins, which draw
what the reader chooses. A test compares the twins in a browser.
"""
