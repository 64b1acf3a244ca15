"""Exercises of the part on tensor parallelism, a file for each chapter."""
