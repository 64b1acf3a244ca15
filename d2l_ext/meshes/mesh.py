"""Devices with named axes: who works with whom, and for what."""
