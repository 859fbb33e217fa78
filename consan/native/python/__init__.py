"""Programs in Python that run with the interposer.

`scripts` finds them, `interpreters` arms each interpreter of theirs, and `frameworks` prepares what these import.
"""
