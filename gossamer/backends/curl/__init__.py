"""Fetching by libcurl, through pycurl."""

from gossamer.backends.curl.transport import CurlTransport

__all__ = ["CurlTransport"]
