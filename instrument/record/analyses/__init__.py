"""Analyses of a kernel's text: what must be in its log, and what need not be."""
