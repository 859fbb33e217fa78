"""Decisions about a launch before it is made."""
