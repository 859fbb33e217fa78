"""Parts of commands: their common base, how they deliver a report, and pieces of `check` and `ptx`."""
