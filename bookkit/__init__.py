"""What the pages of the book need, and no chapter teaches.

| file | holds |
|---|---|
| `show` | the source of the library's functions, inside a chapter |
| `style` | how measured figures look |
| `figures` | figures that move, and charts of what a job did |
| `findings` | what was measured here, beside what the text says of it |
| `stored` | results of runs that not every machine can do: measured, or read |
| `by_hand` | processes that a cell starts one by one, without a launcher |
| `provenance` | where a figure comes from: machine, versions, commit |
| `doctor` | what this machine has, and whether the book runs on it |
"""
