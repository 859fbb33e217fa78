"""Registers of a loop whose values follow from the number of the iteration, though no step makes them (forms.py)."""
