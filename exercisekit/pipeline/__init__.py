"""Exercises of the part on pipelines, one file per chapter."""
