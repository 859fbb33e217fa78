"""Loads of global memory: what nobody writes, and values that go into stores only."""
