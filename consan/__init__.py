"""consan: a shadow-memory race sanitizer for GPU kernels."""
