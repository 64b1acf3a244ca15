"""Exercises of the part on meshes, one file per chapter."""
