"""The user's text: names, lines and declarations of the source, and repairs as changes of it."""
