"""The JSON Schema of stored runs, as package data (read it with `consan.reports.formats.json_format.schema`)."""
