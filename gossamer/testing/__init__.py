"""Shipped with the product, needed by none of it: contract suites, a synthetic web with its oracle, fakes for time and faults."""
