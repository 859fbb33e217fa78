"""The assumptions of a proof about a launch: found in one, checked before each."""
