"""From all launches of a session to what its report says of each kernel."""
