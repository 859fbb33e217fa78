"""What is decided about a launch before it is made."""
