"""How this process keeps memory between pages.

A parsed page is a burst of some hundred kilobytes that is freed a moment later. By default glibc gives the top of the heap
back to the system when it can and takes it again for the next page, which can make parsing two to three times as dear. Kept
is what a few pages need, and no more.
"""

from __future__ import annotations

import contextlib
import ctypes

M_TRIM_THRESHOLD, M_TOP_PAD, M_MMAP_THRESHOLD = -1, -2, -3
KEPT = 64 * 1024 * 1024
PAD = 4 * 1024 * 1024
MAPPED = 8 * 1024 * 1024  # single blocks from this size on are still given back at once


def keep_heap() -> None:
    """Tell glibc; where there is another C library this does nothing."""
    with contextlib.suppress(OSError, AttributeError):
        mallopt = ctypes.CDLL(None).mallopt
        mallopt(M_MMAP_THRESHOLD, MAPPED)
        mallopt(M_TRIM_THRESHOLD, KEPT)
        mallopt(M_TOP_PAD, PAD)
