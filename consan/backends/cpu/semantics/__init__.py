"""The steps of each instruction: its arithmetic, and its effect on the state."""
