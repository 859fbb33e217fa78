"""Processes: how the command's own process ends, and how the child processes of a program are checked too."""
