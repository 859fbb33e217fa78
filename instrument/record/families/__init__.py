"""The recording of each family of instructions: their effects become words of the log."""
