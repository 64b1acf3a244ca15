"""Exercises of the part on meshes, a file for each chapter."""
