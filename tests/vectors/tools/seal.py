#!/usr/bin/env python3
"""Computes tests/vectors/seal.json: sealed states, tickets and blobs made without mrtr.

    python3 tests/vectors/tools/seal.py           write the file
    python3 tests/vectors/tools/seal.py --check   fail if the file is not what would be written

An implementation of the format in mrtr-core's `seal` module, from its description alone, over the PyPI package
`cryptography` (that of tests/interop/python will do); that has no XChaCha20-Poly1305, so HChaCha20 is written out here
and checked against the vector of draft-irtf-cfrg-xchacha-03, section 2.2.1.

The output depends on nothing but this file. Every number in it is big-endian hexadecimal or a plain JSON number of
milliseconds.
"""

import base64
import hashlib
import json
import pathlib
import struct
import sys

from cryptography.hazmat.primitives import hashes, hmac
from cryptography.hazmat.primitives.ciphers.aead import AESGCM, ChaCha20Poly1305
from cryptography.hazmat.primitives.kdf.hkdf import HKDF, HKDFExpand

VERSION = 1
SUITES = {"hmac-sha256": 1, "xchacha20-poly1305": 2, "aes-256-gcm": 3}
FAR = (1 << 48) - 1


# ---------- primitives


def hkdf(ikm, info, length=32, salt=None):
    return HKDF(algorithm=hashes.SHA256(), length=length, salt=salt, info=info).derive(ikm)


def mac(key, *parts):
    h = hmac.HMAC(key, hashes.SHA256())
    for part in parts:
        h.update(part)
    return h.finalize()


def rotl(x, n):
    return ((x << n) | (x >> (32 - n))) & 0xFFFFFFFF


def quarter(s, a, b, c, d):
    s[a] = (s[a] + s[b]) & 0xFFFFFFFF
    s[d] = rotl(s[d] ^ s[a], 16)
    s[c] = (s[c] + s[d]) & 0xFFFFFFFF
    s[b] = rotl(s[b] ^ s[c], 12)
    s[a] = (s[a] + s[b]) & 0xFFFFFFFF
    s[d] = rotl(s[d] ^ s[a], 8)
    s[c] = (s[c] + s[d]) & 0xFFFFFFFF
    s[b] = rotl(s[b] ^ s[c], 7)


def hchacha20(key, nonce16):
    s = list(struct.unpack("<4I", b"expand 32-byte k") + struct.unpack("<8I", key) + struct.unpack("<4I", nonce16))
    for _ in range(10):
        quarter(s, 0, 4, 8, 12)
        quarter(s, 1, 5, 9, 13)
        quarter(s, 2, 6, 10, 14)
        quarter(s, 3, 7, 11, 15)
        quarter(s, 0, 5, 10, 15)
        quarter(s, 1, 6, 11, 12)
        quarter(s, 2, 7, 8, 13)
        quarter(s, 3, 4, 9, 14)
    return struct.pack("<8I", *(s[0:4] + s[12:16]))


assert hchacha20(bytes(range(32)), bytes.fromhex("000000090000004a0000000031415927")) == bytes.fromhex(
    "82413b4227b27bfed30e42508a877d73a0f9e4d58a74a853c12ec41326d3ecdc"
)


def xchacha_seal(key, nonce, aad, plain):
    return ChaCha20Poly1305(hchacha20(key, nonce[:16])).encrypt(bytes(4) + nonce[16:], plain, aad)


# ---------- the format


def key_id(secret):
    return hkdf(secret, b"mrtr/v1/kid")[:4]


def protect(suite, purpose, secret, nonce, aad, body):
    """body (encrypted or not) followed by its tag"""
    label = f"mrtr/v1/{purpose}/{suite}".encode()
    key = hkdf(secret, label)
    if suite == "hmac-sha256":
        return body + mac(key, aad, body)
    if suite == "xchacha20-poly1305":
        return xchacha_seal(key, nonce, aad, body)
    if suite == "aes-256-gcm":
        derived = hkdf(key, label + b"/token", 44, salt=nonce)
        return AESGCM(derived[:32]).encrypt(derived[32:], body, aad)
    raise ValueError(suite)


def sealed(suite, purpose, secret, nonce, body, extra=b"", version=VERSION, suite_byte=None, kid=None):
    suite_byte = SUITES[suite] if suite_byte is None else suite_byte
    head = bytes([version, suite_byte]) + (kid or key_id(secret)) + nonce
    return head + protect(suite, purpose, secret, nonce, b"mrtr/v1" + head + extra, body)


def text(raw):
    return base64.urlsafe_b64encode(raw).decode().rstrip("=")


def expand(entropy, info, length):
    return HKDFExpand(algorithm=hashes.SHA256(), length=length, info=info).derive(entropy)


def entropy_nonce(entropy, n=0):
    return expand(entropy, b"nonce" + struct.pack(">I", n), 24)


def entropy_exchange(entropy):
    return expand(entropy, b"exchange", 16)


def length(b):
    return struct.pack(">Q", len(b))


def bound(secret, label, nonce, value):
    return mac(hkdf(secret, b"mrtr/v1/bind"), label, nonce, length(value), value)[:16]


def principal_value(principal):
    return b"\x00" if principal is None else b"\x01" + length(principal) + principal


def audience_tag(secret, nonce, audience):
    return bound(secret, b"audience", nonce, audience.encode())


def principal_tag(secret, nonce, principal):
    return bound(secret, b"principal", nonce, principal_value(principal))


def state_body(secret, nonce, c):
    def time(ms):
        return struct.pack(">Q", min(ms, FAR))[2:]

    return (
        c["exchange"]
        + struct.pack(">HH", c["round"], c["state_only"])
        + time(c["issued"])
        + time(c["expires"])
        + time(c["deadline"])
        + audience_tag(secret, nonce, c["audience"])
        + principal_tag(secret, nonce, c["principal"])
        + bound(secret, b"request", nonce, c["request"])
        + c["payload"]
    )


# ---------- the cases


def pseudo(name, n):
    out = b""
    while len(out) < n:
        out += hashlib.sha256(f"{name}/{len(out)}".encode()).digest()
    return out[:n]


NOW = 1_785_000_000_000
TTL = 600_000
HOUR = 3_600_000

BASE = {
    "audience": "billing",
    "principal": b"https://issuer.example|ada",
    "round": 1,
    "state_only": 0,
    "issued": NOW,
    "ttl": TTL,
    "deadline": NOW + HOUR,
    "payload": b"journal",
}

VALID = [
    ("plain", {}),
    ("empty payload", {"payload": b""}),
    ("one byte", {"payload": b"\x00"}),
    ("4 KiB", {"payload": pseudo("payload", 4096)}),
    ("anonymous", {"principal": None}),
    ("empty principal", {"principal": b""}),
    ("principal that is not UTF-8", {"principal": b"\xff\xfe\x00"}),
    ("long principal", {"principal": b"p" * 1000}),
    ("audience in Greek", {"audience": "λογιστήριο"}),
    ("empty audience", {"audience": ""}),
    ("largest counts", {"round": 65535, "state_only": 65535}),
    ("round zero", {"round": 0}),
    ("deadline before TTL", {"deadline": NOW + 1}),
    ("half a second", {"ttl": 500}),
    ("no deadline", {"deadline": FAR}),
    ("the epoch", {"issued": 0, "deadline": HOUR}),
    ("long secret", {"secret": pseudo("long secret", 100)}),
]


def complete(name, suite, change):
    c = dict(BASE, **change)
    c.setdefault("secret", pseudo("secret", 32))
    c.setdefault("entropy", pseudo(f"entropy/{suite}/{name}", 32))
    c.setdefault("exchange", entropy_exchange(c["entropy"]))
    c.setdefault("request", pseudo("request", 32))
    c.setdefault("expires", min(c["issued"] + c["ttl"], c["deadline"]))
    return c


def inputs(c):
    """what a reader needs to seal the same and to open"""
    return {
        "secret": c["secret"].hex(),
        "audience": c["audience"],
        "principal": None if c["principal"] is None else c["principal"].hex(),
        "request": c["request"].hex(),
        "entropy": c["entropy"].hex(),
        "exchange": c["exchange"].hex(),
        "round": c["round"],
        "state_only": c["state_only"],
        "issued": c["issued"],
        "ttl": c["ttl"],
        "expires": c["expires"],
        "deadline": c["deadline"],
        "payload": c["payload"].hex(),
    }


def states():
    for suite in SUITES:
        for name, change in VALID:
            c = complete(name, suite, change)
            nonce = entropy_nonce(c["entropy"])
            token = text(sealed(suite, "seal", c["secret"], nonce, state_body(c["secret"], nonce, c)))
            yield {"name": name, "suite": suite, **inputs(c), "token": token}


def refusals():
    """Tokens of someone who has the keys but gets one thing wrong, and honest ones in the wrong place."""
    other = pseudo("other secret", 32)
    for suite in SUITES:
        names = list(SUITES)
        next_suite = names[(names.index(suite) + 1) % 3]

        def case(name, verdict, change=None, open_with=None, ring=None, body=None, purpose="seal", use=suite, **form):
            c = complete(name, suite, change or {})
            nonce = entropy_nonce(c["entropy"])
            raw = sealed(use, purpose, c["secret"], nonce, (body or state_body)(c["secret"], nonce, c), **form)
            o = {**c, "now": c["issued"], **(open_with or {})}
            return {
                "name": name,
                "suite": suite,
                "verdict": verdict,
                "ring": [key.hex() for key in (ring or [c["secret"]])],
                "audience": o["audience"],
                "principal": None if o["principal"] is None else o["principal"].hex(),
                "request": o["request"].hex(),
                "now": o["now"],
                "token": text(raw),
            }

        mine = pseudo("secret", 32)
        both = [mine, other]
        yield case("version 0", "malformed", version=0)
        yield case("version 2", "malformed", version=2)
        yield case("version 255", "malformed", version=255)
        yield case("another suite's honest token", "malformed", use=next_suite)
        yield case("another suite's number over this one's tag", "malformed", suite_byte=SUITES[next_suite])
        long = {"payload": bytes(40)}
        yield case("this suite's number over another one's tag", "unauthentic", long, use=next_suite, suite_byte=SUITES[suite])
        yield case("suite 0", "malformed", suite_byte=0)
        yield case("a key that is not in the ring", "unknown_key", ring=[other])
        yield case("the id of another key of the ring", "unauthentic", ring=both, kid=key_id(other))
        yield case("the same key under an id that nobody has", "unknown_key", kid=b"\x00\x01\x02\x03")
        yield case("a ticket's key", "unauthentic", purpose="ticket")
        yield case("a stored reply's key", "unauthentic", purpose="ledger")
        yield case("a handle's key", "unauthentic", purpose="handle")
        yield case("more is authenticated than the head", "unauthentic", extra=b"\x00")
        yield case("expires when it is issued", "malformed", {"expires": NOW}, {"now": NOW - 1})
        yield case("expires before it is issued", "malformed", {"expires": NOW - 1}, {"now": NOW - 1})
        yield case("expires after the deadline", "malformed", {"expires": NOW + HOUR + 1})
        yield case("a byte short", "malformed", body=lambda s, n, c: state_body(s, n, c)[:85])
        yield case("no body", "malformed", body=lambda s, n, c: b"")
        yield case("issued a millisecond too far ahead", "not_yet_valid", open_with={"now": NOW - 60_001})
        yield case("issued as far ahead as allowed", None, open_with={"now": NOW - 60_000})
        yield case("a millisecond before expiry", None, open_with={"now": NOW + TTL - 1})
        yield case("at expiry", "expired", open_with={"now": NOW + TTL})
        yield case("long after", "expired", open_with={"now": FAR})
        yield case("deadline before TTL, at the deadline", "expired", {"deadline": NOW + 5}, {"now": NOW + 5})
        yield case("another audience", "other_audience", open_with={"audience": "Billing"})
        yield case("another principal", "other_principal", open_with={"principal": b"https://issuer.example|eve"})
        yield case("anonymous instead of a principal", "other_principal", open_with={"principal": None})
        yield case("a principal instead of anonymous", "other_principal", {"principal": None}, {"principal": b""})
        yield case("another request", "other_request", open_with={"request": pseudo("another request", 32)})
        wrong = {"audience": "x", "principal": None, "request": bytes(32)}
        yield case("everything wrong and early", "not_yet_valid", open_with={**wrong, "now": 0})
        yield case("everything wrong and late", "expired", open_with={**wrong, "now": NOW + TTL})
        yield case("everything wrong but the time", "other_audience", open_with=wrong)
        yield case("principal and request wrong", "other_principal", open_with={**wrong, "audience": "billing"})


def tickets():
    for suite in SUITES:
        for name, principal, key in [
            ("plain", BASE["principal"], "pay"),
            ("anonymous", None, "pay#12"),
            ("longest key", b"ada", "k" * 128),
            ("one character", b"", "é"),
        ]:
            secret, entropy = pseudo("secret", 32), pseudo(f"ticket/{suite}/{name}", 32)
            exchange, nonce, expires = pseudo("exchange", 16), entropy_nonce(entropy), NOW + HOUR
            body = (
                exchange
                + struct.pack(">Q", expires)[2:]
                + audience_tag(secret, nonce, "billing")
                + principal_tag(secret, nonce, principal)
                + key.encode()
            )
            yield {
                "name": name,
                "suite": suite,
                "secret": secret.hex(),
                "audience": "billing",
                "principal": None if principal is None else principal.hex(),
                "entropy": entropy.hex(),
                "exchange": exchange.hex(),
                "key": key,
                "expires": expires,
                "token": text(sealed(suite, "ticket", secret, nonce, body)),
            }


def blobs():
    for suite in SUITES:
        for kind in ["ledger", "handle"]:
            for name, place, content in [("plain", b"place", b"reply"), ("empty", b"", b""), ("1 KiB", b"p", pseudo("b", 1024))]:
                secret, entropy = pseudo("secret", 32), pseudo(f"{kind}/{suite}/{name}", 32)
                extra = length(b"billing") + b"billing" + length(place) + place
                yield {
                    "name": name,
                    "suite": suite,
                    "kind": kind,
                    "secret": secret.hex(),
                    "audience": "billing",
                    "place": place.hex(),
                    "entropy": entropy.hex(),
                    "content": content.hex(),
                    "blob": sealed(suite, kind, secret, entropy_nonce(entropy), content, extra).hex(),
                }


def entropies():
    for n in [0, 1, 255, 256]:
        entropy = pseudo("entropy", 32)
        yield {"entropy": entropy.hex(), "n": n, "nonce": entropy_nonce(entropy, n).hex(), "exchange": entropy_exchange(entropy).hex()}


out = {
    "about": "Made by tools/seal.py, which says how. A refusal without a verdict is one that must open.",
    "key_ids": [{"secret": s.hex(), "key_id": key_id(s).hex()} for s in [pseudo("secret", 32), bytes(32), pseudo("long secret", 100)]],
    "entropy": list(entropies()),
    "states": list(states()),
    "refusals": list(refusals()),
    "tickets": list(tickets()),
    "blobs": list(blobs()),
}
path = pathlib.Path(__file__).resolve().parent.parent / "seal.json"
text = json.dumps(out, indent=1, ensure_ascii=False) + "\n"
if sys.argv[1:] == ["--check"]:
    if path.read_text(encoding="utf-8") != text:
        sys.exit(f"{path.name} is not what {pathlib.Path(__file__).name} computes")
else:
    path.write_text(text, encoding="utf-8")
counts = ", ".join(f"{len(out[kind])} {kind}" for kind in ("states", "refusals", "tickets", "blobs"))
print(f"{path.name}: {counts}")
