"""The style sheet and the script of the HTML page, from the files in `page/`.

Colours are variables, once for the light and once for the dark scheme; a test computes their contrast (4.5 to 1 for text, 3 to 1 for
lines). The script filters findings and copies commands; a page without it shows everything, and text can be selected by hand.
"""

from __future__ import annotations

from importlib import resources
from typing import Final


def _read(name: str) -> str:
    return "\n" + (resources.files("consan.reports") / "page" / name).read_text(encoding="utf-8")


#: The colours, which the page and a picture on its own share.
PALETTE: Final = _read("palette.css")

#: Colours and strokes of a timeline.
PICTURE: Final = _read("picture.css")

STYLE: Final = PALETTE + _read("page.css") + PICTURE
SCRIPT: Final = _read("filter_and_copy.js")
