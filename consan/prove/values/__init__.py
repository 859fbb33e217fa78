"""Values in registers: which threads of a CTA have the same one."""
