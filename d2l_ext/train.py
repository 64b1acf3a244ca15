"""The command `python -m d2l_ext.train --network lenet --devices cpu:0,cpu:1`.

The package `trainkit` does the work. To import its `main`, import `trainkit.command`:
the name `d2l_ext.train` is a function of the source documents.
"""

if __name__ == "__main__":
    from trainkit.command import command

    command()
