"""From PTX to what the machine runs: blocks, names, operands and addresses as arrays."""
