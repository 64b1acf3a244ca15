"""The same training step in MXNet, PyTorch and JAX, from the same weights and data.

Developed in the chapter *The same step in PyTorch and JAX*.
"""
