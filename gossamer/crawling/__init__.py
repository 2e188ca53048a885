"""One worker: from leases to settled pages.

The life of a page here: the worker (`worker`) leases as much as it has free slots for; a *visit* (`visit`) fetches it
through the middlewares and the transport, lets the spider handle it and turns what the handler asked for into an outcome; the
*settler* (`settler`) gathers outcomes while the last batch commits, and settles them together, which brings the next leases
with it. Nothing is written before the settle, so a worker may be killed anywhere. `followers` bring settled items to sinks.

What one worker knows about a task lies in `runtime`: its spider, settings, scope, what URLs are known to be enqueued
(`knowing`), the rules of hosts (`rules`). What may take the process down is done in a child (`isolation`).
"""
