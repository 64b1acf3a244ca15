"""Exercises of the part on the kvstore, a file for each chapter."""
