"""Launches as users write them: arguments as text, and the kernel's parameters that they must fit."""

from typing import Final

AGAIN: Final = 60.0  # seconds at most, on the virtual machine, for a launch whose log a fault has taken
