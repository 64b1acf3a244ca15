"""Devices with named axes."""
