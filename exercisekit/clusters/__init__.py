"""Exercises of the part on clusters, one file per chapter."""
