"""Makes launches, watches them to their end, and judges their logs."""
