"""The recording pass: PTX that writes down what each thread did, and the templates that say what its words mean.

A recorded kernel makes no calls and looks at no shadow memory. A block is a stretch of straight-line code. Where a block has events
(accesses to shared memory, barriers), the thread stores the number of the block and then one word for each value that the text does
not tell: addresses, guards, stored values. The block's template holds the rest. Two running hashes of 64 bits cover all words but
stored values, so the host knows which CTAs did the same.

On a GPU most words are not stored, because the host can compute them (computed.py): addresses, parities, descriptors and guards mostly
follow from the thread's number, the parameters and the loops' counters. expansion.py is the text that does so.

Public: `record(text)` gives a `Recorded`, which names the kernels that the pass does not take yet. consan/checker reads the log.
"""

from consan.instrument.record.module import record, waiting_together
from consan.instrument.record.recorded import Compact, Expansion, Recorded

__all__ = ["Compact", "Expansion", "Recorded", "record", "waiting_together"]
