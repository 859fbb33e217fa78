"""The passes of `--engine inline`: each inserts the hooks of one group of instructions."""
