"""Texture objects: what they describe, and arrays that are passed as textures."""
