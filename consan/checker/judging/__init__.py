"""From the logs of a launch to its findings."""
