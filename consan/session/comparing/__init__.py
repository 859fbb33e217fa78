"""Launches that may run at the same time: the streams and graphs that order them, and their accesses."""
