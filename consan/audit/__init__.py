"""Audits kernels of files."""
