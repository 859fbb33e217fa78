"""A folder for PYTHONPATH: `sitecustomize` in it arms consan in the Python processes that a program starts (`consan.process.children`)."""
