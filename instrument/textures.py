"""Names of what fetches read: numbers that no address in global memory has (PTX ISA "tex", "tld4").

Whether elements of a texture have addresses, its object says: the handle is in the name. The number of the element follows from the text
where a coordinate is an integer and nothing filters, which is so for one dimension; of all other fetches it is zero: any elements of
the texture. The checker asks the objects for their bytes (consan/checker/source/basis/textures.hpp).
"""

from __future__ import annotations

from typing import Final

__all__ = ["FIRST", "HANDLE", "HANDLE_BITS", "INDEX_BITS"]

FIRST: Final = 2 << 62  # names are at least that, and below those of surfaces
INDEX_BITS: Final = 30  # of the number of an element, from one on
HANDLE: Final = INDEX_BITS  # the lowest bit of the handle
HANDLE_BITS: Final = 32
