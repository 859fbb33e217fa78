"""One module of a program: its texts, its loaded forms, and the device that it is on."""
