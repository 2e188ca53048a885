"""A ready-made certificate for the test web, and the authority that signed it.

It protects nothing: everyone who has this package has the key. It exists so that TLS can be measured and tested on
loopback with verification switched on and without asking for the `openssl` command. Names: localhost, *.localhost,
::1, 127.0.0.1 to 127.0.0.33. Valid for a hundred years; the authority's own key was thrown away.
"""

from __future__ import annotations

import ssl
import tempfile
from pathlib import Path

AUTHORITY = """\
-----BEGIN CERTIFICATE-----
MIIBhzCCAS2gAwIBAgIUIWPBBJIafthbWRgLPDsNYWNdESowCgYIKoZIzj0EAwIw
HzEdMBsGA1UEAwwUR29zc2FtZXIgdGVzdCB3ZWIgQ0EwIBcNMjAwMTAxMDAwMDAw
WhgPMjEyMDAxMDEwMDAwMDBaMB8xHTAbBgNVBAMMFEdvc3NhbWVyIHRlc3Qgd2Vi
IENBMFkwEwYHKoZIzj0CAQYIKoZIzj0DAQcDQgAEQo4+vzGMWbW9bOG3S6NSyjML
peE2bEjhuzLS/aoSFYfaiMX62N0rM7NlfWAZoYCqrxs2PsE9OGWs2EalwE3EhKNF
MEMwEgYDVR0TAQH/BAgwBgEB/wIBADAOBgNVHQ8BAf8EBAMCAQYwHQYDVR0OBBYE
FNrl2PEp7v/I7j1khiibmU4pPsTkMAoGCCqGSM49BAMCA0gAMEUCIH4kIRcrJ+PM
FaGA0igkZD9sO5buJFuKBqD7oDfJhKNyAiEAxfV8hwRuF8nAS8qlqsfxhXzIjC8K
w1OEqzgkhsmaUUw=
-----END CERTIFICATE-----
"""

CERTIFICATE = """\
-----BEGIN CERTIFICATE-----
MIICrjCCAlSgAwIBAgIULidQ8kopnnyOlLBDw/sqzB0O+BIwCgYIKoZIzj0EAwIw
HzEdMBsGA1UEAwwUR29zc2FtZXIgdGVzdCB3ZWIgQ0EwIBcNMjAwMTAxMDAwMDAw
WhgPMjEyMDAxMDEwMDAwMDBaMBQxEjAQBgNVBAMMCWxvY2FsaG9zdDBZMBMGByqG
SM49AgEGCCqGSM49AwEHA0IABP4hMV4YnDk+8QMvJDHWm/tKGmj2NZk1Wu8fF2xY
vcVmgfQq4lWPB0i1ICSWTEgvbSzHo/Ouz1jX+xYCYUohdnijggF1MIIBcTAMBgNV
HRMBAf8EAjAAMA4GA1UdDwEB/wQEAwIHgDATBgNVHSUEDDAKBggrBgEFBQcDATAd
BgNVHQ4EFgQU70F/V/IDQvHAH9E6es5hhyfSZ3gwHwYDVR0jBBgwFoAU2uXY8Snu
/8juPWSGKJuZTik+xOQwgfsGA1UdEQSB8zCB8IIJbG9jYWxob3N0ggsqLmxvY2Fs
aG9zdIcQAAAAAAAAAAAAAAAAAAAAAYcEfwAAAYcEfwAAAocEfwAAA4cEfwAABIcE
fwAABYcEfwAABocEfwAAB4cEfwAACIcEfwAACYcEfwAACocEfwAAC4cEfwAADIcE
fwAADYcEfwAADocEfwAAD4cEfwAAEIcEfwAAEYcEfwAAEocEfwAAE4cEfwAAFIcE
fwAAFYcEfwAAFocEfwAAF4cEfwAAGIcEfwAAGYcEfwAAGocEfwAAG4cEfwAAHIcE
fwAAHYcEfwAAHocEfwAAH4cEfwAAIIcEfwAAITAKBggqhkjOPQQDAgNIADBFAiEA
pcgx6ueKqy5fqq7UEo5Uw1W5fZEEGiz4lTg8YPnOzMECICY/gtpiaGWo9dKo3Yv/
qlv/Pb6M63PB9kdM7rFVJYZQ
-----END CERTIFICATE-----
"""

KEY = """\
-----BEGIN PRIVATE KEY-----
MIGHAgEAMBMGByqGSM49AgEGCCqGSM49AwEHBG0wawIBAQQgpymLKBbsmkgdDcFD
8emxu/HFyWy9LbgLPRFjBmLMZ8ehRANCAAT+ITFeGJw5PvEDLyQx1pv7Shpo9jWZ
NVrvHxdsWL3FZoH0KuJVjwdItSAklkxIL20sx6Pzrs9Y1/sWAmFKIXZ4
-----END PRIVATE KEY-----
"""


def write_certificate(directory: Path) -> Path:
    """Write ca.pem, certificate.pem and key.pem into the directory; returns the path of ca.pem."""
    directory.mkdir(parents=True, exist_ok=True)
    for name, text in (("ca.pem", AUTHORITY), ("certificate.pem", CERTIFICATE), ("key.pem", KEY)):
        (directory / name).write_text(text, encoding="ascii")
    return directory / "ca.pem"


def server_tls() -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.set_alpn_protocols(["http/1.1"])
    with tempfile.TemporaryDirectory() as directory:  # ssl reads a chain from files only
        write_certificate(Path(directory))
        context.load_cert_chain(Path(directory, "certificate.pem"), Path(directory, "key.pem"))
    return context


def client_tls() -> ssl.SSLContext:
    """What a client needs to trust the test web, and nothing else."""
    return ssl.create_default_context(cadata=AUTHORITY)
