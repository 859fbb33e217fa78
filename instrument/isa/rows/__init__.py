"""The rows of the opcode table, by the chapters of the PTX ISA."""
