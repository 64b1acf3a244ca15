"""The distributed kvstore."""
