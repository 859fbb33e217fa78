"""What the user wrote: names, lines and declarations of the source, and repairs as changes of it."""
