"""Logs of recorded launches: their memory, their names and groups, and what the host computes of them."""
