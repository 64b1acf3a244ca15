"""Jobs that lose a process or a host: their steps, losses and restarts.

Developed in the chapter *Faults and recovery*.
"""
