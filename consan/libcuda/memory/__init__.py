"""Calls about memory itself, not about what is in it."""
