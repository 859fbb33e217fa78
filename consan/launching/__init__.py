"""Launches as users write them: arguments as text, and the kernel's parameters that they must fit."""
