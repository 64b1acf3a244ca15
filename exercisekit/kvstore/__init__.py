"""Exercises of the part on the kvstore, one file per chapter."""
