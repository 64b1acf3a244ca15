"""Exercises of the part on memory, a file for each chapter."""
