"""Jobs on networks that lose, delay and choke, measured in a cluster in a box.

Developed in the chapter *Unreliable networks*.
"""
