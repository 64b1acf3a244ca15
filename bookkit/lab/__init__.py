"""What a page needs to run a reader's code: an engine, the judges, small arrays.

| file | holds |
|---|---|
| `arrays` | NumPy's arrays in pure Python, for a page that has no NumPy |
| `indexing` | which numbers of an array an index means |
| `scalars` | types of numbers, and single ones |
| `chance` | NumPy's legacy random numbers |
| `pack` | the sources that a page's Python needs, and the tasks that run there |
| `cells` | what the editor of a chapter's cell begins with |
| `engine` | Pyodide from the lock of a package registry, as scripts beside the pages |
| `desk` | in the page's Python: runs what the reader wrote, and has it judged |
"""
