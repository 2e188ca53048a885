"""In which order a task visits: one number a record, higher first within its host."""

from __future__ import annotations

STEP = 1024  # an author's priority outweighs any depth below this


MOST = 1 << 40  # an author's priority, either way


def priority_of(order: str, depth: int, own: int = 0) -> int:
    """`breadth` visits the nearest first, `depth` the farthest, `best` follows the author's own priority alone."""
    level = min(depth, STEP - 1)
    own = max(-MOST, min(own, MOST))
    if order == "breadth":
        return own * STEP - level
    if order == "depth":
        return own * STEP + level
    return own * STEP


def own_of(order: str, depth: int, priority: int) -> int:
    """The author's priority in a record's: retries have made it sink by a few, and no more than that is rounded off."""
    level = min(depth, STEP - 1)
    if order == "breadth":
        priority += level
    elif order == "depth":
        priority -= level
    return -(-priority // STEP)
