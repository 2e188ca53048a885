"""What an author writes against. Readable alone, testable offline: nothing here knows a network, a store or a clock.

The way of a page through this room: the engine makes a `Page` of an answer; `Routes` finds the handler by label, pattern
or fallback; the handler is called and what it yields (items, `Follow`s, requests) goes one by one to the `Recorder`,
which validates and encodes items and writes everything into `Effects`. If the handler raises, `HandlerFailed` goes up
and the effects are gone; if it succeeds, the engine settles them with the page, all or nothing.
"""

from gossamer.spiders.page import Page
from gossamer.spiders.spider import Spider, find_spiders

__all__ = ["Page", "Spider", "find_spiders"]
