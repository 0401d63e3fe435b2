"""Secrets in addresses: finding them, so that they are refused in files, and hiding them, so that they are not shown.

An address carries a secret as the password before its host, as the user before the host of a web address (that is how
tokens are sent), or as a parameter (libpq reads `?password=`, web services `?token=`). Names of files that hold
secrets (`passfile`, `sslkey`) are no secrets.
"""

from __future__ import annotations

import re
from typing import Final

HIDDEN: Final = "***"
_NAMES: Final = re.compile(
    r"(.*[_-])?(password|passwd|pwd|pass|sslpassword|token|jwt|secret|apikey|key|auth|authorization|signature|sig|credential)",
    re.IGNORECASE,
)
_FILES: Final = frozenset({"sslkey"})
_USERINFO: Final = re.compile(r"(?<=://)[^/?#@]*(?:@[^/?#@]*)*(?=@)")
_PARAMETER: Final = re.compile(r"(?<=[?&;])([^=&;#]+)=([^&;#]*)")


def names_secret(name: str) -> bool:
    """Whether a parameter or variable of this name holds a secret (`password`, `SLURM_JWT`, `api_key`)."""
    return name.lower() not in _FILES and _NAMES.fullmatch(name) is not None


def holds_secret(url: str) -> bool:
    """Whether an address carries a secret.

    >>> holds_secret("postgresql://u@h/d?password=s"), holds_secret("http://TOKEN@host"), holds_secret("postgresql://u@h/d")
    (True, True, False)
    """
    return redacted(url) != url


def redacted(url: str) -> str:
    """The address as it may be shown.

    >>> redacted("postgresql://u:s@h/d?password=s&passfile=/etc/p")
    'postgresql://u:***@h/d?password=***&passfile=/etc/p'
    """

    def user(match: re.Match[str]) -> str:
        name, colon, _ = match[0].partition(":")
        return name + colon + HIDDEN if colon else HIDDEN if url.lower().startswith("http") else name

    def parameter(match: re.Match[str]) -> str:
        return f"{match[1]}={HIDDEN}" if names_secret(match[1]) else match[0]

    return _PARAMETER.sub(parameter, _USERINFO.sub(user, url, count=1))
