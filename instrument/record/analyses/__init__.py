"""What the text of a kernel says of what must be in its log, and what need not be."""
