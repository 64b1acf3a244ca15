"""The same layouts in this book's compiler and in JAX: what is inserted.

Developed in the chapter *Say where it lies*.
"""
