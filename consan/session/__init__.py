"""A session: what is checked while it lasts, on which device, and how its launches ended."""
