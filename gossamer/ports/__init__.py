"""Promises that several technologies keep. Protocols and their docstrings; the suites in `testing.contracts` test them.

`frontier` is the truth about records, `transport` carries one exchange, `blobs` keeps bodies, `sinks` take items, `cache` serves
answers during development, `clock` is time.
"""
