"""What would be found if a kernel were changed: changes, their replays, and which synchronisation is not needed."""
