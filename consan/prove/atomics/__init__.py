"""The order that strong accesses make between CTAs: flags, locks, and counters of atomic additions.

One thread of a CTA reads the word and passes it on: it stores what it has read in shared memory, and all load that behind a barrier
(broadcasts.py). What that thread has read is one value for its CTA (first.py). words.py has the rules for what was read; published.py which
accesses of a CTA come before a write of its word; order.py asks both of a pair.
"""
