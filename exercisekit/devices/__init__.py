"""Exercises of the part on devices, a file for each chapter."""
