"""Which of libcurl's sockets are ready, asked for many at once.

All sockets are gathered in one kernel queue of our own, and the event loop watches only that queue. One wake-up then
serves every ready socket, and a connection that goes idle between two requests needs no system call at all: that
halves the cost of a request against watching each socket on the loop (benchmarks/transport.py).
"""

from __future__ import annotations

import os
import select
import selectors
from collections.abc import Callable
from contextlib import suppress
from typing import Protocol

READ, WRITE = 1, 2
_BATCH = 512
_HAS_EPOLL = hasattr(select, "epoll")

if _HAS_EPOLL:
    _IN, _OUT, _ONCE = select.EPOLLIN, select.EPOLLOUT, select.EPOLLONESHOT
    _MASKS = (0, _IN | _ONCE, _OUT | _ONCE, _IN | _OUT | _ONCE)


def _events(mask: int) -> int:
    """What libcurl shall look at; an error or a hang-up counts as readable."""
    return (READ if mask & ~_OUT else 0) | (WRITE if mask & _OUT else 0)


class Readiness(Protocol):
    """A set of watched sockets with a descriptor that becomes readable when one of them is ready."""

    def fileno(self) -> int: ...

    def watch(self, fd: int, events: int) -> None:
        """Watch for READ, WRITE or both; replaces what was watched for."""
        ...

    def rest(self, fd: int) -> None:
        """Stop watching. Comes before libcurl closes the socket or puts it into its pool."""
        ...

    def serve(self, act: Callable[[int, int], object]) -> None:
        """Call `act` with descriptor and READ | WRITE for each socket that is ready now, without waiting."""
        ...

    def close(self) -> None: ...


class EpollReadiness:
    """Readiness on Linux.

    A resting socket stays registered, since most are watched again soon, and the kernel forgets closed ones by
    itself: `modify` failing means "new". One-shot registration keeps it quiet meanwhile: a server that closes an
    idle connection, or a forked child that holds a closed one open, wakes us once and not for ever.
    """

    def __init__(self) -> None:
        self._queue = select.epoll()
        self._watched: dict[int, int] = {}

    def fileno(self) -> int:
        return self._queue.fileno()

    def watch(self, fd: int, events: int) -> None:
        mask = _MASKS[events]
        if fd in self._watched:
            try:
                self._queue.modify(fd, mask)
            except FileNotFoundError:  # another socket has got the number of a closed one
                self._enter(fd, mask)
        else:
            self._enter(fd, mask)
        self._watched[fd] = mask

    def rest(self, fd: int) -> None:
        self._watched[fd] = 0

    def serve(self, act: Callable[[int, int], object]) -> None:
        watched = self._watched
        for fd, mask in self._queue.poll(0, _BATCH):
            if watched.get(fd):
                act(fd, READ if mask == _IN else _events(mask))
                if again := watched[fd]:
                    self._queue.modify(fd, again)

    def close(self) -> None:
        self._queue.close()

    def _enter(self, fd: int, mask: int) -> None:
        os.set_inheritable(fd, False)
        self._queue.register(fd, mask)


class SelectorReadiness:
    """Readiness where there is no epoll, by the standard library's best selector."""

    def __init__(self) -> None:
        self._selector = selectors.DefaultSelector()

    def fileno(self) -> int:
        return int(self._selector.fileno())  # epoll, kqueue and devpoll have it

    def watch(self, fd: int, events: int) -> None:
        try:
            self._selector.modify(fd, events)
        except KeyError:
            os.set_inheritable(fd, False)
            self._selector.register(fd, events)

    def rest(self, fd: int) -> None:
        with suppress(KeyError):  # it never had to wait
            self._selector.unregister(fd)

    def serve(self, act: Callable[[int, int], object]) -> None:
        for key, events in self._selector.select(0):
            if key.fd in self._selector.get_map():  # an earlier call may have closed it
                act(key.fd, events)

    def close(self) -> None:
        self._selector.close()


def open_readiness() -> Readiness:
    return EpollReadiness() if _HAS_EPOLL else SelectorReadiness()
