"""Findings that follow from the text of a kernel alone, with either engine."""
