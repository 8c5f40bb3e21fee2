#!/usr/bin/env python3
"""Computes tests/vectors/digest.json, apart from the Rust code, from the format in mrtr-core/src/digest/mod.rs.

    python3 tests/vectors/tools/digest.py           write the file
    python3 tests/vectors/tools/digest.py --check   fail if the file is not what would be written

Only Python's standard library is used. The texts are inputs; everything called `digest` is computed here.
"""

import hashlib
import json
import pathlib
import re
import sys

FILE = pathlib.Path(__file__).resolve().parent.parent / "digest.json"


class Fault(Exception):
    """What has no digest."""


class Number(str):
    """A number as its text."""


class Members(list):
    """An object as its members in the order of the text."""


def u64(number):
    return number.to_bytes(8, "big")


def sha256(data):
    return hashlib.sha256(data).digest()


def read(text):
    return json.loads(text, parse_int=Number, parse_float=Number, object_pairs_hook=Members)


def utf8(text):
    try:
        return text.encode("utf-8")
    except UnicodeEncodeError:
        raise Fault("lone surrogate") from None


def decimal(text):
    """Sign, exponent and digits of a number; empty for zero."""
    sign, whole, fraction, exponent = re.fullmatch(r"(-?)(\d+)(?:\.(\d+))?(?:[eE]([+-]?\d+))?", text).groups("")
    if len(exponent.lstrip("+-")) > 10 or abs(int(exponent or "0")) > 10**9:
        raise Fault("number")
    digits = whole + fraction
    power = int(exponent or "0") - len(fraction)
    power += len(digits) - len(digits.rstrip("0"))
    digits = digits.strip("0")
    if not digits:
        return b""
    return (sign or "+").encode() + power.to_bytes(8, "big", signed=True) + digits.encode()


def content(value):
    """Tag and content of a value."""
    if value is None:
        return b"n", b""
    if value is False:
        return b"f", b""
    if value is True:
        return b"t", b""
    if isinstance(value, Number):
        return b"d", decimal(value)
    if isinstance(value, str):
        return b"s", utf8(value)
    if isinstance(value, Members):
        members = sorted((utf8(name), encode(member)) for name, member in value)
        inner = b"".join(u64(len(name)) + name + member for name, member in members)
        return b"o", sha256(b"o" + u64(len(value)) + inner)
    return b"a", sha256(b"a" + u64(len(value)) + b"".join(encode(element) for element in value))


def encode(value):
    tag, inner = content(value)
    return tag + u64(len(inner)) + inner


def structural(value):
    tag, inner = content(value)
    return inner if tag in b"ao" else sha256(encode(value))


def request(method, target, arguments):
    method, target = method.encode(), target.encode()
    text = b"mrtr/v1/request" + u64(len(method)) + method + u64(len(target)) + target
    return sha256(text + structural(read(arguments or "{}")))


KINDS = {"form": 1, "url": 2, "sampling": 3, "roots": 4}


def fingerprint(kind, params):
    params = Members((name, value) for name, value in read(params or "{}") if name != "_meta")
    return sha256(b"mrtr/v1/ask" + bytes([KINDS[kind]]) + structural(params))


# One value each, in as many spellings as encoders have for it.
SAMPLE = {"z": [1, 1.5, 1e21, 1e-7, True, None], "é": "a<b>&c\u2028\U0001f600\"\\/\n", "A": {}, "10": -0.0, "9": ""}
EQUAL = {
    "null": ["null", " null\n"],
    "true": ["true"],
    "false": ["false"],
    "empty string": ['""'],
    "empty array": ["[]", "[ ]", "[\r\n]"],
    "empty object": ["{}", "{ }"],
    "zero": ["0", "-0", "0.0", "-0.000", "0e5", "0E-7"],
    "one": ["1", "1.0", "1e0", "1E+0", "10e-1", "0.1e1", "0.01e2", "1e-0", "1.000000000000000000000000000000"],
    "minus one": ["-1", "-1.0", "-10e-1"],
    "a hundred": ["100", "1e2", "1E2", "1.00e2", "1e+02", "100.0"],
    "a tenth": ["0.1", "1e-1", "0.10", "100e-3"],
    "1205e-1": ["120.5", "120.50", "1205e-1", "1.205e2"],
    "2^53": ["9007199254740992", "9007199254740992.0", "9.007199254740992e15"],
    "2^53+1": ["9007199254740993", "9007199254740993.0"],
    "2^63": ["9223372036854775808"],
    "2^64-1": ["18446744073709551615"],
    "2^64": ["18446744073709551616", "1.8446744073709551616e19"],
    "2^64+1": ["18446744073709551617"],
    "-(2^63)-1": ["-9223372036854775809"],
    "1e21": ["1e21", "1e+21", "1000000000000000000000", "1000000000000000000000.0"],
    "1e400": ["1e400", "1" + "0" * 400],
    "1e-400": ["1e-400", "0." + "0" * 399 + "1"],
    "largest exponent": ["1e1000000000", "1E+1000000000", "10e999999999"],
    "smallest exponent": ["1e-1000000000", "0.1e-999999999"],
    "1e999999999": ["1e999999999"],
    "a tenth as a double": ["0.1000000000000000055511151231257827021181583404541015625"],
    "string 1": ['"1"', '"\\u0031"'],
    "string null": ['"null"'],
    "e acute": ['"é"', '"\\u00e9"', '"\\u00E9"'],
    "e and combining acute": ['"e\u0301"', '"e\\u0301"'],
    "astral": ['"😀"', '"\\ud83d\\ude00"', '"\\uD83D\\uDE00"'],
    "escapes": ['"\\"\\\\\\/\\b\\f\\n\\r\\t\\u0000"', '"\\u0022\\u005c/\\u0008\\u000c\\u000a\\u000d\\u0009\\u0000"'],
    "delete and next line": ['"\x7f\x85"', '"\\u007f\\u0085"'],
    "array of one": ["[1]", "[1.0]", "[ 1e0 ]"],
    "array in array": ["[[1]]"],
    "flat numbers": ["[1,2,3]", "[1, 2, 3]"],
    "nested numbers": ["[1,[2,3]]"],
    "other nested numbers": ["[[1,2],3]"],
    "array of digest length strings": ['["' + "a" * 32 + '"]'],
    "object of one": ['{"a":1}', '{ "a" : 1 }', '{"\\u0061":1.0}'],
    "object with null": ['{"a":null}'],
    "object with empty name": ['{"":{}}'],
    "key order": ['{"a":1,"b":2}', '{"b":2,"a":1}', '{"\\u0062":2e0,"\\u0061":1}'],
    "values exchanged": ['{"a":2,"b":1}', '{"b":1,"a":2}'],
    "name with length of another": ['{"ab":"c"}'],
    "name split elsewhere": ['{"a":"bc"}'],
    "astral sorts above the private use area": [
        '{"\ue000":1,"😀":2}',
        '{"\\ud83d\\ude00":2,"\\ue000":1}',
    ],
    "names by bytes, not by case": ['{"B":1,"a":2,"_":3,"é":4}', '{"é":4,"a":2,"_":3,"B":1}'],
    "prefix sorts first": ['{"ab":1,"a":2,"":3}', '{"":3,"a":2,"ab":1}'],
    "depth 64": ["[" * 64 + "]" * 64, "[ " * 64 + " ]" * 64],
    "depth 63": ["[" * 63 + "]" * 63],
    "depth 64 with a number": ["[" * 64 + "1" + "]" * 64, "[" * 64 + "1.0" + "]" * 64],
    "depth 64 with another number": ["[" * 64 + "2" + "]" * 64],
    "depth 64 of objects": ['{"a":' * 63 + "{}" + "}" * 63, '{"\\u0061":' * 63 + "{}" + "}" * 63],
    "encoders": [
        # Python
        json.dumps(SAMPLE),
        json.dumps(SAMPLE, ensure_ascii=False),
        json.dumps(SAMPLE, sort_keys=True, indent=2),
        json.dumps(SAMPLE, separators=(",", ":")),
        # JavaScript: JSON.stringify puts names that are array indices first and has no -0.
        '{"9":"","10":0,"z":[1,1.5,1e+21,1e-7,true,null],"é":"a<b>&c\u2028😀\\"\\\\/\\n","A":{}}',
        # Go: encoding/json sorts names and escapes what HTML could trip over.
        '{"10":-0,"9":"","A":{},"z":[1,1.5,1e+21,1e-7,true,null],'
        '"é":"a\\u003cb\\u003e\\u0026c\\u2028😀\\"\\\\/\\n"}',
        # PHP: json_encode escapes slashes and everything beyond ASCII.
        '{"z":[1,1.5,1.0e+21,1.0e-7,true,null],"\\u00e9":"a<b>&c\\u2028\\ud83d\\ude00\\"\\\\\\/\\n",'
        '"A":{},"10":-0.0,"9":""}',
    ],
}

FAULTS = [
    "1e1000000001",
    "-1e-1000000001",
    "0e1000000001",
    "1e10000000000",
    "1e00000000001",
    '{"a":[1,1e99999999999999999999]}',
    '"\\ud83d"',
    '"\\ude00\\ud83d"',
    '["\\ud83d\\u0041"]',
    '{"\\udfff":1}',
    '{"a":{"b":["x","\\ud800"]}}',
]

REQUESTS = [
    ("tools/call", "greet", None),
    ("tools/call", "greet", "{}"),
    ("tools/call", "greet", "null"),
    ("tools/call", "greet", '{"_meta":{}}'),
    ("tools/call", "greeter", "{}"),
    ("tools/call", "", "{}"),
    ("prompts/get", "greet", "{}"),
    ("tools/callg", "reet", "{}"),
    ("tools/call", "transfer", '{"to":"é","amount":10}'),
    ("tools/call", "transfer", '{"amount":1e1,"to":"\\u00e9"}'),
    ("tools/call", "transfer", '{"to":"é","amount":1000000}'),
    ("resources/read", "file:///a b?c=é", None),
]

ASKS = [
    ("roots", None),
    ("roots", "{}"),
    ("roots", '{"_meta":{"progressToken":1}}'),
    ("roots", '{"\\u005fmeta":{"n":1e99999999999}}'),
    ("form", '{"message":"Name?","requestedSchema":{"type":"object","properties":{}}}'),
    ("form", '{"_meta":1,"requestedSchema":{"properties":{},"type":"object"},"message":"Name\\u003f"}'),
    ("form", '{"message":"Name?","requestedSchema":{"type":"object","properties":{},"_meta":1}}'),
    ("url", '{"mode":"url","message":"Log in","url":"https://example.com/?a=1"}'),
    ("sampling", '{"messages":[],"maxTokens":100}'),
    ("sampling", '{"messages":[],"maxTokens":1e2}'),
    ("sampling", '{"messages":[],"maxTokens":101}'),
]


def vectors():
    equal = []
    for name, texts in EQUAL.items():
        digests = {structural(read(text)) for text in texts}
        assert len(digests) == 1, name
        equal.append({"name": name, "texts": texts, "digest": digests.pop().hex()})
    assert len({group["digest"] for group in equal}) == len(equal)
    faults = []
    for text in FAULTS:
        try:
            raise AssertionError(structural(read(text)).hex())
        except Fault as fault:
            faults.append({"text": text, "fault": str(fault)})
    return {
        "structural": equal,
        "faults": faults,
        "requests": [
            {"method": method, "target": target, "arguments": text, "digest": request(method, target, text).hex()}
            for method, target, text in REQUESTS
        ],
        "fingerprints": [
            {"kind": kind, "params": text, "digest": fingerprint(kind, text).hex()}
            for kind, text in ASKS
        ],
    }


def main():
    text = json.dumps(vectors(), indent=1) + "\n"
    if sys.argv[1:] == ["--check"]:
        if FILE.read_text() != text:
            sys.exit(f"{FILE.name} is not what {pathlib.Path(__file__).name} computes")
    else:
        FILE.write_text(text)


if __name__ == "__main__":
    main()
