"""Exercises of the part on memory, one file per chapter."""
