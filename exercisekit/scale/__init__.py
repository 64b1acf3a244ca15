"""Exercises of the part on scale, a file for each chapter."""
