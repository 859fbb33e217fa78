"""The processes of an audit: one that imports, and one for each file."""
