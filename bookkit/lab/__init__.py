"""What a page needs to run a reader's code: an engine, the judges, small arrays.

| file | holds |
|---|---|
| `arrays` | NumPy's arrays in pure Python, for a page that has no NumPy |
| `indexing` | the numbers of an array that an index selects |
| `scalars` | types of numbers, and single ones |
| `promises` | arrays on devices: reading one is a wait, and counted |
| `chance` | NumPy's legacy random numbers |
| `pack` | the sources that a page's Python needs, and the tasks that run there |
| `cells` | the initial text of the editor of a chapter's cell |
| `engine` | Pyodide from the lock of a package registry, as scripts beside the pages |
| `desk` | in the page's Python: runs the reader's code, and has it judged |
"""
