"""Processes: how the command's own ends, and how those that a program starts are checked too."""
