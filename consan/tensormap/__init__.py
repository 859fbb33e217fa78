"""Tensor maps: their 128 bytes, and maps as arguments of a launch."""
