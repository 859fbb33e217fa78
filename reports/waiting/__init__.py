"""Threads that wait: for what, who could end it, and the findings about them."""
