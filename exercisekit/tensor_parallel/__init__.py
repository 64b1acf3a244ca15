"""Exercises of the part on tensor parallelism, one file per chapter."""
