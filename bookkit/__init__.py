"""The book's machinery for its pages, which no chapter teaches.

| file | holds |
|---|---|
| `show` | the source of the library's functions, inside a chapter |
| `style` | the style of measured figures |
| `figures` | interactive figures, and charts of jobs |
| `lab` | the editor of the pages: a reader's code is run and judged there |
| `findings` | measurements of this run, compared with the text |
| `stored` | results that not every machine can measure: measured, or read |
| `functions` | the functions behind some code, and a digest of what they do |
| `by_hand` | processes that a cell starts itself, without a launcher |
| `provenance` | the origin of a figure: machine, versions, commit |
| `doctor` | whether the book runs on this machine, and on which devices |
"""
