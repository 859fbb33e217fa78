"""The formats of a report, a file each."""
