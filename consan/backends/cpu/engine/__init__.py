"""Runs modules: launches, waves, control flow, schedules, and the proof that nothing can go on."""
