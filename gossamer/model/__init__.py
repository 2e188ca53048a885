"""The nouns of crawling and their rules. Pure: nothing here awaits, reads a clock or knows a driver.

The life of the data: a raw link becomes a canonical URL with a host key and a fingerprint (`url`), passes the scope
(`scope`) and becomes a link to push (`record`). A leased record is a grant; what came of it is judged by tables and pure
functions (`retry`, `pace`, `redirects`, `robots`, `traps`) into an outcome with orders for its host (`host`, `hostrow`).
Items are encoded once (`item`), a task moves along one table (`task`), every setting stands once (`settings`), and what goes
wrong on purpose is one tree (`errors`).
"""
