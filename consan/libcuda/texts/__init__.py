"""The texts of modules: lines for PTX that has none, and the CUDA C++ that it was built from."""
