"""The JSON Schema of stored runs, as package data (read it with `consan.reports.json_format.schema`)."""
