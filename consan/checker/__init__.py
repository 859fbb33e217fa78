"""The checker of recorded launches: it replays what each CTA did, on the host, and reports accesses that nothing orders.

A recorded kernel (consan/instrument/record) logs what its threads do. CTAs that did the same have equal hashes, and one of them
is replayed for all. The checker is sequential and exact: a clock per thread, every byte, every reader, and no record is evicted.

It is C++ (source/, a file for each rule, in folders that include one way), built with the package; sources that differ from what was built
are compiled at first use and cached. The reasons, against Numba: it needs no package of 100 MB; loading it takes a millisecond, while Numba
takes a second to import and more to load its cache; and readers of the rules know CUDA C++. The build on a machine without a compiler takes
that of the `ziglang` wheel (consan/toolchain/host_library.py).

Not handled: logs that grow while the kernel runs, and repeats inside a CTA.
"""
