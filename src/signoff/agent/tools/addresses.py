"""Which network addresses belong to the public internet. Pure.

Everything else is refused: this machine, private networks, addresses of a link, of providers' metadata services and
of shared carriers, and every form of IPv6 that carries an IPv4 address.
"""

from __future__ import annotations

import ipaddress

_SPECIAL = tuple(map(ipaddress.IPv4Network, ("168.63.129.16/32", "192.0.0.0/24", "192.88.99.0/24")))
"""Global by the standard library's table, but a cloud provider's own service, or kept for special purposes."""
_UNICAST = ipaddress.IPv6Network("2000::/3")
_TRANSITION = (ipaddress.IPv6Network("2001::/23"), ipaddress.IPv6Network("2002::/16"))
_ISATAP = (b"\x00\x00\x5e\xfe", b"\x02\x00\x5e\xfe")


def is_public(address: str) -> bool:
    """Whether an address, as the resolver writes it, may be connected to. False if it cannot be read."""
    try:
        known = ipaddress.ip_address(address)
    except ValueError:
        return False
    if isinstance(known, ipaddress.IPv4Address):
        is_special = known.is_multicast or known.is_reserved or any(known in network for network in _SPECIAL)
        return known.is_global and not is_special
    if known.scope_id or known not in _UNICAST or not known.is_global:
        return False
    return not any(known in network for network in _TRANSITION) and known.packed[8:12] not in _ISATAP
