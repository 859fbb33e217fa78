"""What of a kernel's PTX differs between checkouts that are alike."""

from __future__ import annotations

import re

PLACE = re.compile(r'^\s*\.file\s+\d+ ".*$', re.M)  # names the folder of the checkout
