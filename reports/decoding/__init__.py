"""From records of findings, and from hazards in the text, to findings in words."""
