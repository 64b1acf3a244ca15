"""Clusters: checkpoints, and what workers agree on."""
