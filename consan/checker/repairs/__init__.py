"""Repairs of a finding: candidates, their texts, and those with which nothing is found."""
