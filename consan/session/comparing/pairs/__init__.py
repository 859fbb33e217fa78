"""Two launches that may run at the same time, and what was done in each."""
