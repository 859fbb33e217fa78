"""Proves, before a launch, that no two of its threads touch a byte of global memory that one of them writes.

The proof is arithmetic on the text, the parameters, the grid and the block: values.py has the numbers of all threads at once, slices.py
reads the kernel (deciding.py: which of its branches matter), walk.py goes through it with them, accesses.py has the bytes of an instruction
(boxes.py: of a tensor copy), overlaps.py compares them. footprint.py has the ranges of one launch, for a comparison with another one,
words.py the most words of its log. A launch with a proof needs no log of its global memory: no address, and no stored value, which would
only tell how severe a race is. All other launches are recorded in full.

The pointers among the parameters have no numbers in a proof. So it holds for all launches whose pointers are as far apart as its ranges
want: `Proof.together` compares them. Pointers that are nearer to each other have a proof of their own, for their distances.

Not proven: addresses that follow from loaded values, accesses of a kernel whose threads exchange data through global memory, calls, and
copies by tensor maps that are no parameters, or whose boxes are no tiles.
"""

from consan.ranges.footprint import Touched, footprint
from consan.ranges.forms import AccessForm, NotProven
from consan.ranges.proof import Proof, prove, proven
from consan.ranges.slices import Slice
from consan.ranges.walk import LaunchExtents

__all__ = ["AccessForm", "LaunchExtents", "NotProven", "Proof", "Slice", "Touched", "footprint", "prove", "proven"]
