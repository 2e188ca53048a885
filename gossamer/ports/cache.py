"""Answers kept for development: an author who tries a spider again and again asks the site once.

It obeys nothing that HTTP says about caching, so it is for writing a spider and not for crawling with one.
"""

from __future__ import annotations

from typing import Protocol

from gossamer.ports.transport import Answer


class AnswerCache(Protocol):
    """Answers by fingerprint. What it cannot keep or read it has not: it never raises for a single answer."""

    async def get(self, key: bytes) -> Answer | None:
        """The answer as it came, or None."""

    async def put(self, key: bytes, answer: Answer) -> None:
        """Keep it, in place of an older one."""
