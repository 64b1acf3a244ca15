"""Exercises of the part on faults and their symptoms, one file per chapter."""
