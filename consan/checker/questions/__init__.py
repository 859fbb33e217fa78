"""Findings of a kernel that is changed: changes, their replays, and which synchronisation is not needed."""
