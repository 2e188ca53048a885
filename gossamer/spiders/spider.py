"""A spider: where to start, which pages matter, what to take from them.

A spider is a declaration. Making one, importing its file and routing a page touch no network and no disk, so a spider
can be tested offline with `try_page`, listed, and sent by name to other machines. Whatever runs it reads it.
"""

from __future__ import annotations

import importlib
import re
from collections.abc import AsyncIterator, Callable, Mapping
from contextvars import ContextVar
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any, TypeVar

from gossamer.model.errors import SpiderError
from gossamer.model.item import MAX_ITEM, ItemRules, Key
from gossamer.model.request import Request
from gossamer.spiders.args import Args, check_declared, with_values
from gossamer.spiders.calling import is_async, name_of
from gossamer.spiders.effects import Effects
from gossamer.spiders.handling import call_hook
from gossamer.spiders.hooks import Hooks, Moment
from gossamer.spiders.middleware import Middlewares
from gossamer.spiders.options import checked_settings
from gossamer.spiders.page import Page
from gossamer.spiders.recording import Cleaner
from gossamer.spiders.routes import Route, Routes
from gossamer.spiders.seeds import Seed, check_start, read_seeds

if TYPE_CHECKING:
    from gossamer.spiders.trial import Trial

F = TypeVar("F", bound=Callable[..., Any])

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}")


class Spider:
    """What an author writes. Settings (see `Settings`) are given by name: Spider("books", start=…, per_host=2)."""

    def __init__(
        self,
        name: str,
        *,
        start: Any = (),
        item: Any = None,
        key: Key = None,
        args: Mapping[str, Any] | None = None,
        max_item: int = MAX_ITEM,
        **settings: Any,
    ) -> None:
        if not isinstance(name, str) or not _NAME.fullmatch(name):
            raise SpiderError(
                f"{name!r:.100} is no name for a spider", hint="use up to 100 letters, digits, dots, - and _"
            )
        check_start(name, start)
        self.name = name
        self.start = start
        self.settings = checked_settings(settings, where=f"Spider({name!r})")
        """The settings given here, and no others: file, environment and command line are stronger."""
        self.rules = ItemRules(item, key, max_item)
        self.routes = Routes()
        self.hooks = Hooks()
        self.around_fetching = Middlewares("@spider.fetching")
        self.around_handling = Middlewares("@spider.handling")
        self.cleaners: tuple[Cleaner, ...] = ()
        self._max_item = max_item
        self._item = item
        self._key = key
        check_declared(name, args or {})
        # A worker may run two tasks of one spider with different arguments: each has its own context.
        self._args: ContextVar[Args] = ContextVar(f"args of {name}", default=Args(name, args or {}))  # noqa: B039  (never changed)

    @property
    def args(self) -> Args:
        """The arguments of the task that is running here; outside of one, the defaults."""
        return self._args.get()

    def use_args(self, values: Mapping[str, Any]) -> None:
        """Give the arguments (the others are their defaults), here and in the asyncio tasks started from here on."""
        self._args.set(with_values(self._args.get(), values))

    def fix_args(self, values: Mapping[str, Any]) -> None:
        """Give the arguments to whoever uses this object, in whatever context: it serves one task only."""
        self._args = ContextVar(f"args of {self.name}", default=with_values(self._args.get(), values))  # noqa: B039  (never changed)

    # What an author decorates

    def page(
        self,
        pattern: str | None = None,
        *,
        label: str | None = None,
        any_status: bool = False,
        item: Any = None,
        key: Key = None,
    ) -> Callable[[F], F]:
        """The handler of the pages that fit: `@spider.page("/book/{slug}")`; without pattern and label, of the rest.

        The placeholders of the pattern ({name}, {name:int}, {name:path}) are passed to parameters of the same names.
        With `any_status` it gets answers other than 2xx too. `item` and `key` stand over those of the spider.
        """
        if callable(pattern):
            raise SpiderError("`page` is called to decorate", hint="write @spider.page() with brackets")
        own_rules = item is not None or key is not None
        rules = ItemRules(item or self._item, key or self._key, self._max_item) if own_rules else None

        def decorate(handler: F) -> F:
            self.routes.add(Route(handler, pattern, label, any_status=any_status, rules=rules))
            return handler

        return decorate

    def started(self, function: F) -> F:
        """Called without arguments when the task begins to run in a worker; may yield URLs and requests."""
        return self._hook("started", function)

    def idle(self, function: F) -> F:
        """Called without arguments when nothing is left to do; what it yields goes on, nothing ends the task."""
        return self._hook("idle", function)

    def ended(self, function: F) -> F:
        """Called with the statistics when the task has ended."""
        return self._hook("ended", function)

    def failed(self, function: F) -> F:
        """Called with a `Failure` for each URL that is given up; may yield items and requests."""
        return self._hook("failed", function)

    def dropped(self, function: F) -> F:
        """Called with (item, reason) for items that are dropped or invalid: the first 100 of a page."""
        return self._hook("dropped", function)

    def fetching(self, function: F | None = None, *, name: str | None = None, order: int = 0) -> Any:
        """A middleware around the fetch: `async def f(request, call_next)`, which returns what call_next gave, or an answer
        of its own: status, headers, body."""
        return self._middleware(self.around_fetching, function, name, order)

    def handling(self, function: F | None = None, *, name: str | None = None, order: int = 0) -> Any:
        """A middleware around the handler: `async def f(page, call_next)`, which returns what call_next gave."""
        return self._middleware(self.around_handling, function, name, order)

    def cleaning(self, function: F) -> F:
        """A step that every item passes before it is validated: returns the item, or None (or raises Drop) to drop it."""
        if is_async(function):
            raise SpiderError(f"{name_of(function)} is async; cleaning is not", hint="await in the handler")
        self.cleaners = (*self.cleaners, function)
        return function

    # What runs it asks

    def seeds(self) -> AsyncIterator[Seed]:
        """Every URL and request of `start`, in order; may never end."""
        return read_seeds(self.start)

    def wants(self, page: Page) -> bool:
        """Whether this answer goes to a handler: 2xx, or any status where the request or the route asks for it."""
        return page.ok or self.wants_status(page.request, page.url)

    def wants_status(self, request: Request, url: str) -> bool:
        """Whether answers to this request go to a handler that are not 2xx."""
        if request.any_status:
            return True
        found = self.routes.find(url, request.label)
        return found is not None and found[0].any_status

    @property
    def handles_failures(self) -> bool:
        return bool(self.hooks.failed)

    @property
    def has_idle_hook(self) -> bool:
        """Whether the task stays open when nothing is left, to be asked for more."""
        return bool(self.hooks.idle)

    async def call(self, moment: Moment, *given: Any, base: str | None = None) -> Effects:
        """Call what the author wrote for this moment; the effects are the caller's to settle."""
        return await call_hook(self, self.hooks.at(moment), *given, base=base)

    async def announce_dropped(self, effects: Effects) -> None:
        """Tell `@spider.dropped` what these effects left out. To be called when they are settled, not before."""
        if self.hooks.dropped:
            for dropped in effects.dropped:
                await self.call("dropped", dropped.item, dropped.reason)

    # What a person calls

    def try_page(self, url: str, html: str | bytes = "", **given: Any) -> Trial:
        """Handle a page offline and see what comes out: `books.try_page(url, html).items`. See `spiders.trial.try_page`."""
        from gossamer.spiders.trial import try_page

        return try_page(self, url, html, **given)

    async def run(
        self,
        *,
        args: Mapping[str, Any] | None = None,
        state: Path | str = ".gossamer",
        output: Path | str | None = None,
        fresh: bool = False,
        quiet: bool = True,
        **settings: Any,
    ) -> Any:
        """Crawl from here, in a script or a notebook: returns the summary. Settings stand over those of the spider.

        `state` is the folder that remembers the crawl, `output` the file of items (NAME.jsonl), `fresh` begins anew.
        """
        checked = checked_settings(settings, where=f"{self.name}.run()")
        if args:
            self.use_args(args)
        # Spiders must be readable and testable without the rest, so no import of services may stand in this package.
        # Only this call, which an author makes in a finished program, needs them; the name is looked up at the last moment.
        library = importlib.import_module("gossamer.services.library")
        return await library.run_spider(
            self, args=args or {}, state=state, output=output, fresh=fresh, quiet=quiet, **checked
        )

    def _hook(self, moment: Moment, function: F) -> F:
        self.hooks.at(moment).append(function)
        return function

    def _middleware(self, chain: Middlewares, function: F | None, name: str | None, order: int) -> Any:
        """Serves both spellings: `@spider.fetching` and `@spider.fetching(order=5)`."""

        def decorate(function: F) -> F:
            chain.add(function, name, order)
            return function

        return decorate if function is None else decorate(function)

    def __repr__(self) -> str:
        return f"<Spider {self.name}: {len(self.routes)} routes>"


def find_spiders(module: ModuleType) -> list[Spider]:
    """The spiders that a file defines or imports, in the order of their first names; each once."""
    found = {id(value): value for value in vars(module).values() if isinstance(value, Spider)}
    return list(found.values())
