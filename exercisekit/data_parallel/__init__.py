"""Exercises of the part on data parallelism, a file for each chapter."""
