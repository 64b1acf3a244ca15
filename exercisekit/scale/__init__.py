"""Exercises of the part on scale, one file per chapter."""
