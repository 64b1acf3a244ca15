"""The trainer behind `python -m d2l_ext.train`."""
