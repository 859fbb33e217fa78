"""Loops that wait for an mbarrier: those that only wait, that give up, and whose result nothing uses."""
