"""Graphs of a program: captured, or made node by node."""
