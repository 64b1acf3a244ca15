"""Jobs that exchange every H-th step only, on slow links in a cluster in a box.

Developed in the chapter *Exchanging less often*.
"""
