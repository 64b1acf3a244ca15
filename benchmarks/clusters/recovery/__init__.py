"""To fail and go on: what workers agree on, what a checkpoint is worth, who is alive.

Developed in the chapter *Faults and recovery*.
"""
