"""Runs modules: launches, waves, control flow, schedules, and the proof that a launch hangs."""
