"""Exercises of the part on pipelines, a file for each chapter."""
