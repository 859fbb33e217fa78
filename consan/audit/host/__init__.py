"""The host's part of an audited source: separated from the device's, built, and loaded."""
