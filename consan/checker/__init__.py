"""The checker of recorded launches: it replays what each CTA did, on the host, and finds what nothing orders.

A recorded kernel (consan/instrument/record) writes down what its threads do. CTAs that did the same have equal hashes, and one of them
is replayed for all. The checker is sequential and exact: clocks per thread, every byte, every reader, no record that is evicted.

It is C++ (source/, one rule a file), compiled at first use and cached. The reasons, against Numba: it needs no package of 100 MB on a
machine that has none; loading it takes a millisecond, while Numba takes a second to import and more to load its cache; and who
knows the rules reads CUDA C++ anyway. A machine without a compiler takes the `ziglang` wheel, if that is installed. Without either the
engine is `inline`, and the report says why.

Not handled: logs that grow while the kernel runs, repeats inside a CTA, launches that a framework makes on a GPU (they take called hooks).
"""
