"""Records of findings, and what they say: who, where, which bytes, in what order."""
