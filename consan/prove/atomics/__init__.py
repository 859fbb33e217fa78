"""The order that strong accesses make between CTAs: flags, locks, and counters of atomic additions.

One thread of a CTA reads the word and passes it on: it stores what it has read in shared memory, and all load that behind a barrier
(broadcasts.py), or it comes to that barrier only where it has read what it waits for. What that thread has read is one value for its CTA
(first.py). words.py has the rules for what was read; fences.py which accesses acquire and release; published.py which accesses of a CTA
come before a write of its word, or behind a read; order.py asks all of a pair.
"""
