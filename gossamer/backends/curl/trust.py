"""Where the certificates of the trusted authorities are.

A libcurl that came in a wheel was built on another machine and may look where this one has nothing, so the place is
found here and told to it. No bundle at all is an error at start rather than a failure of every HTTPS page.
"""

from __future__ import annotations

import os
from importlib.util import find_spec
from pathlib import Path

_SYSTEM_BUNDLES = (
    "/etc/ssl/certs/ca-certificates.crt",  # Debian, Ubuntu, Arch, Gentoo
    "/etc/pki/tls/certs/ca-bundle.crt",  # Fedora, Red Hat
    "/etc/ssl/ca-bundle.pem",  # openSUSE
    "/etc/ssl/cert.pem",  # Alpine, macOS, BSD
    "/usr/local/share/certs/ca-root-nss.crt",  # FreeBSD
)


def find_ca_file(asked: str | os.PathLike[str] | None = None) -> str:
    """The bundle to verify by: the one asked for, `SSL_CERT_FILE`, the system's, or certifi's."""
    named = asked or os.environ.get("SSL_CERT_FILE")
    if named:
        if not Path(named).is_file():
            source = "ca_file" if asked else "SSL_CERT_FILE"
            raise FileNotFoundError(
                f"{source} names {os.fspath(named)!r}, which is not a file: give a PEM bundle"
            )
        return os.fspath(named)
    for bundle in _SYSTEM_BUNDLES:
        if Path(bundle).is_file():
            return bundle
    if find_spec("certifi") is not None:
        import certifi

        return str(certifi.where())
    raise FileNotFoundError(
        "no bundle of certificate authorities: install the system's ca-certificates or certifi, or set SSL_CERT_FILE"
    )
