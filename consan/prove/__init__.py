"""Proves that no launch of a kernel has a data race in shared or global memory: for all grids and all values of its parameters.

One thread that stands for all goes through the kernel (walk.py, step.py, operations.py): its accesses are terms over the thread's numbers,
the grid and the parameters (numbers.py, environment.py). Pairs of accesses that no barrier orders (intervals.py, copies.py, uniform.py)
are questions to a solver (pairs.py, solver.py): may two threads be at the same bytes? If not, nothing races. An instruction that is not
modelled has no proof (kernel.py). A launch in which two threads may meet is a counterexample once it has run and shown its race
(counterexample.py).
"""
