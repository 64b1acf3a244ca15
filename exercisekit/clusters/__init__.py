"""Exercises of the part on clusters, a file for each chapter."""
