"""Exercises of the part on data parallelism, one file per chapter."""
