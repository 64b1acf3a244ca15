"""Exercises of the part on faults and their symptoms, a file for each chapter."""
