"""Facts of each function before it is rewritten: its sites, its calls, its annotations, and where lanes must be together."""
