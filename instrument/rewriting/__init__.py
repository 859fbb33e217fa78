"""How both engines rewrite a kernel: its sites and edits, the PTX that is inserted, and changes of the text that each of them needs."""
