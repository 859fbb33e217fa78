"""The rewriting passes: each inserts the hooks of one group of instructions."""
