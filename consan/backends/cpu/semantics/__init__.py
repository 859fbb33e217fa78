"""What each instruction does: its arithmetic, and its effect on the state."""
