"""The state that instructions change: memory, registers, barriers, copies in flight, and which threads of a wave are where."""
