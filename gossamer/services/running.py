"""From a command, a file or a duty of a crew to a spider, and from a spider to its run in this terminal."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Coroutine
from typing import TYPE_CHECKING, Any, TypeVar

from gossamer.model.errors import OutputError, StateError, TaskFailed
from gossamer.services.crew import Duty, duty_of
from gossamer.services.performing import Performance, Shared
from gossamer.services.progress import View, make_view
from gossamer.services.seeding import check_start
from gossamer.services.sparing import SparingHandler
from gossamer.services.submission import Code, name_with, spec_of
from gossamer.services.summary import report
from gossamer.services.wiring import machine_id
from gossamer.services.working import worker_parts

if TYPE_CHECKING:
    from gossamer.model.settings import Settings
    from gossamer.services.options import RunOptions
    from gossamer.spiders import Spider

__all__ = ["Performance", "conduct", "crawl", "run", "run_loop", "spider_for", "worker_parts"]

T = TypeVar("T")
log = logging.getLogger("gossamer")


def crawl(options: RunOptions) -> int:
    """`gossamer crawl`: the exit code."""
    from gossamer.model.url import canonical, origin_of
    from gossamer.services.simple import simple_spider

    settings = options.resolve()
    urls = [canonical(url) for url in options.urls]
    name = options.task or name_with(
        origin_of(urls[0]).host.strip("[]"), urls, sorted(options.select.items()), settings.settings.follow
    )
    code = Code(name, urls=tuple(urls), select=options.select, follow=settings.settings.follow)
    spider = simple_spider(name, urls, options.select, follow=settings.settings.follow)
    duty = duty_of(
        str(options.state), name, urls=tuple(urls), select=options.select, follow=settings.settings.follow,
        frontier=options.frontier, namespace=options.namespace,
    )  # fmt: skip
    return conduct(spider, name, settings.settings, options, duty, code)


def run(options: RunOptions) -> int:
    """`gossamer run FILE`: the exit code."""
    from gossamer.services.loading import load_spider
    from gossamer.services.submission import hosts_of_seeds

    assert options.file is not None
    spider = load_spider(options.file)
    spider.use_args(options.args)
    loaded = options.resolve(
        spider.settings, spider=spider.name, seed_hosts=lambda known: hosts_of_seeds(spider, known)[0]
    )
    derived = name_with(spider.name, sorted(options.args.items())) if options.args else spider.name
    name = options.task or derived
    code = Code(spider.name, digest_of(options.file), args=options.args)
    duty = duty_of(
        str(options.state), name, file=options.file, args=options.args,
        frontier=options.frontier, namespace=options.namespace,
    )  # fmt: skip
    return conduct(spider, name, loaded.settings, options, duty, code)


def digest_of(target: str) -> str:
    """The digest of the spider's code; `target` is FILE or FILE:NAME."""
    from gossamer.services.loading import file_of
    from gossamer.services.projects import digest

    return digest(file_of(target))


def spider_for(duty: Duty) -> Spider:
    """The spider of a crew's duty."""
    from gossamer.services.loading import load_spider
    from gossamer.services.simple import simple_spider

    if duty.file is None:
        return simple_spider(duty.task, duty.urls, duty.select, follow=duty.follow)
    spider = load_spider(duty.file)
    spider.use_args(duty.args)
    return spider


def conduct(
    spider: Spider,
    name: str,
    settings: Settings,
    options: RunOptions,
    duty: Duty | None,
    code: Code | None = None,
) -> int:
    """Run the task in this terminal; report how it ended."""
    check_start(spider, settings)
    spec = spec_of(
        name, spider, settings, options.output_for(name), code=code,
        machine=machine_id(options.state) if options.frontier else "",
        keep_open=options.keep_open, needs=options.needs,
    )  # fmt: skip
    view = make_view(quiet=options.quiet)
    quiet_log(view, settings.log_level)
    performance = Performance(
        spider, spec, options.state, options.output_for(name), view, fresh=options.fresh
    )
    performance.workers = options.workers
    performance.shared = (
        Shared(options.frontier, options.namespace, options.works) if options.frontier else None
    )
    performance.duty = duty
    performance.signals = True
    with view:
        try:
            ending = run_loop(performance.run())
        except (OutputError, StateError) as error:
            if performance.began:  # before that it is the command that names something it cannot use
                raise TaskFailed(error.what, where=error.where, hint=error.hint) from error
            raise
    ending.note_selected(options.select)
    if options.keeps_nothing:
        ending.output = None
    report(ending, as_json=options.json, quiet=options.quiet)
    return int(ending.exit_code)


def run_loop(work: Coroutine[Any, Any, T]) -> T:
    """Run on uvloop where there is one."""
    try:
        import uvloop
    except ImportError:
        return asyncio.run(work)
    return uvloop.run(work)


def quiet_log(view: View, level: str) -> None:
    """Log lines go through the view, so that they never tear the panel."""
    handler = SparingHandler(view)
    handler.setFormatter(logging.Formatter("%(message)s"))
    log.handlers[:] = [handler]
    log.setLevel(level.upper())
    log.propagate = False
