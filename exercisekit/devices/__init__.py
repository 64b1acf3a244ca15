"""Exercises of the part on devices, one file per chapter."""
