"""The order that mbarriers make, by their phases, for every number of iterations.

Each thread counts what it has done with an array of mbarriers: waits that ended, arrivals, bytes of copies (counters.py). If each of its
waits and arrivals comes to the next mbarrier of the array, with the parity of the next phase, then one more completed phase follows from
each wait, by induction over the counts (model.py). arrays.py has the threads that may arrive, and how many arrivals a phase needs; which
accesses are ordered then, in order.py.

The order that barriers of warps make within an interval is in warps.py; which writes proxy fences follow, in proxies.py;
how many bytes tensor copies have, in boxes.py; what matrix products read, in products.py.
"""
