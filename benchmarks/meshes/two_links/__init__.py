"""An allreduce over two kinds of links: one ring, and in a hierarchy, in a box.

Developed in the chapter *Two kinds of links*.
"""
