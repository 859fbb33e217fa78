"""What a launch is given: arguments as they are written, and the kernel's parameters that they must fit."""
