"""Audits kernels of files: they run with their own host code on the virtual machine (tutorials/guide/audit.md).

`verify` judges one source. `sources_in` lists the files of a folder that have kernels, for `pytest.mark.parametrize`. The command is
`consan audit`.
"""

from __future__ import annotations

from consan.audit.files import sources_in
from consan.audit.verifying import Verdict, verify

__all__ = ["Verdict", "sources_in", "verify"]
