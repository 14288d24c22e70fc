"""What can happen to a model file: bits and bytes, its header as a text, and everything that it says about itself."""

import json
import struct
from copy import deepcopy

import numpy as np

HOSTILE = [
    *(None, True, False, 0, -1, 1, 2**31, 2**63, 10**400, -(10**400), 0.5, 1e308, -1e308, float("nan"), float("inf")),
    *("", "x", "os.system", "__import__('os').system('true')", "../../etc/passwd", "\x00", "é" * 50, "1" * 5_000),
    *(
        [],
        {},
        [[]],
        [None] * 5,
        [1, 2, 3],
        ["a", "b", "c", "d"],
        {"measure": "nDCG@10"},
        {"measure": 5},
        {"loss": "SLAM"},
    ),
    {"measure": "nDCG(dcg=__import__('os'))@1"},
    {"loss": "os.system", "parameters": {"command": "true"}},
    {"loss": "SLAM", "parameters": {"margin": {"loss": "SLAM", "parameters": []}}},
    {"list": [1, {"list": [2], "tuple": 1}], "tuple": True},
    {"list": list(range(1_000)), "tuple": False},
    {"pairs": [[{"list": [], "tuple": False}, 1]]},
    {"pairs": [["a", 1], ["a", 2]]},
    {"ranker": "RidgeRanker"},
]
DTYPES = ["F16", "F32", "F64", "BF16", "F8_E5M2", "I8", "I32", "I64", "U8", "U64", "BOOL", "C64", "", "x", None, 5]
SHAPES = [[], [0], [1], [-1], [2**62, 4], [2**32, 2**32], [2**63], [1.5], ["4"], None, 4, [4, 1], [1, 4], [10**30]]


def hostile(rng):
    return deepcopy(HOSTILE[rng.integers(0, len(HOSTILE))])


def parts(whole):
    """(header, what rankwise says, bytes of the arrays)."""
    length = int.from_bytes(whole[:8], "little")
    header = json.loads(whole[8 : 8 + length])
    return header, json.loads(header["__metadata__"]["rankwise"]), whole[8 + length :]


def joined(header, about, data):
    """The file with its own header."""
    if about is not None:
        header["__metadata__"]["rankwise"] = about if isinstance(about, str) else json.dumps(about)
    text = json.dumps(header).encode()
    return struct.pack("<Q", len(text)) + text + data


def places(value, path=()):
    """Every place in nested lists and dictionaries."""
    yield path
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, item in list(items)[:30]:
        yield from places(item, (*path, key))


def put(value, path, new):
    for key in path[:-1]:
        value = value[key]
    value[path[-1]] = new


def bits(whole, rng):
    """Flipped bits, in the text or anywhere."""
    changed = bytearray(whole)
    text = 8 + len(whole[8 : 8 + int.from_bytes(whole[:8], "little")].rstrip())
    end = text if rng.random() < 0.7 else len(whole)
    for _ in range(rng.integers(1, 4)):
        changed[rng.integers(0, end)] ^= 1 << rng.integers(0, 8)
    return bytes(changed)


def cut(whole, rng):
    """Cut short, filled up with zeros, or with something behind it."""
    place = int(rng.integers(0, len(whole)))
    rest = (b"", bytes(len(whole) - place), rng.bytes(len(whole) - place))[rng.integers(0, 3)]
    return whole[:place] + rest if rng.random() < 0.8 else whole + rng.bytes(int(rng.integers(1, 100)))


def swapped(whole, rng):
    """Two stretches in each other's place, or one of them twice."""
    text = 8 + len(whole[8 : 8 + int.from_bytes(whole[:8], "little")].rstrip())
    first, second = sorted(int(one) for one in rng.integers(8, text, 2))
    size = int(rng.integers(1, 20))
    changed = bytearray(whole)
    one, other = whole[first : first + size], whole[second : second + size]
    changed[first : first + len(other)] = other
    if rng.random() < 0.5:
        changed[second : second + len(one)] = one
    return bytes(changed)


def length(whole, rng):
    """Another length of the header."""
    wrong = (0, 1, 7, 2**63, 2**64 - 1, len(whole), 2 * len(whole), int(rng.integers(0, 2**40)))
    return struct.pack("<Q", wrong[rng.integers(0, len(wrong))]) + whole[8:]


def said(whole, rng):
    """Another value, none, or another name, somewhere in what rankwise says about the model."""
    header, about, data = parts(whole)
    for _ in range(rng.integers(1, 3)):
        found = [path for path in places(about) if path]
        path = found[rng.integers(0, len(found))]
        holder = about
        for key in path[:-1]:
            holder = holder[key]
        what = rng.random()
        if what < 0.75:
            put(about, path, hostile(rng))
        elif isinstance(holder, dict) and what < 0.9:
            holder[str(rng.integers(0, 99))] = holder.pop(path[-1])
        else:
            del holder[path[-1]]
    return joined(header, about, data)


def twice(whole, rng):
    """A key that stands there twice, or a text so deep that no parser reads it."""
    header, about, data = parts(whole)
    text = json.dumps(about)
    if rng.random() < 0.5:
        deep = int(rng.integers(10, 200_000))
        opened, closed = (("[", "]"), ('{"a":', "}"))[rng.integers(0, 2)]
        value = opened * deep + "1" + closed * (deep if rng.random() < 0.8 else 0)
    else:
        value = json.dumps(hostile(rng))
    key = ("kind", "format", "facts", "version", "ranker", "parameters", "learned")[rng.integers(0, 7)]
    place = text.find('"facts": {') + len('"facts": {') if rng.random() < 0.7 else 1
    return joined(header, text[:place] + f'"{key}": {value}, ' + text[place:], data)


def arrays(whole, rng):
    """Other types, shapes, places or names of arrays."""
    header, _, data = parts(whole)
    names = [name for name in header if name != "__metadata__"]
    name, other = (names[rng.integers(0, len(names))] for _ in range(2))
    what = rng.integers(0, 6)
    if what == 0:
        header[name]["dtype"] = DTYPES[rng.integers(0, len(DTYPES))]
    elif what == 1:
        header[name]["shape"] = SHAPES[rng.integers(0, len(SHAPES))]
    elif what == 2:
        wrong = (-1, 0, 8, 2**62, len(data), 1.5, None, "0")
        header[name]["data_offsets"][rng.integers(0, 2)] = wrong[rng.integers(0, len(wrong))]
    elif what == 3:
        header[name], header[other] = header[other], header[name]
    elif what == 4:
        header[f"{name}x"] = header.pop(name)
    else:
        header[name] = hostile(rng)
    return joined(header, None, data)


def numbers(whole, rng):
    """Numbers that nobody learned, in the arrays themselves."""
    header, _, data = parts(whole)
    names = [name for name in header if name != "__metadata__" and header[name]["data_offsets"][1] > 0]
    first, last = header[names[rng.integers(0, len(names))]]["data_offsets"]
    wrong = [np.nan, np.inf, -np.inf, 1e308, -1e308, 5e-324, -1.0]
    word = struct.pack("<d", wrong[rng.integers(0, len(wrong))])
    if rng.random() < 0.3:
        word = struct.pack("<q", [-1, 2**62, -(2**63), 2**31][rng.integers(0, 4)])
    words = max(1, (last - first) // 8)
    place = first + 8 * int(rng.integers(0, words))
    if rng.random() < 0.3:
        place, word = first, (word * words)[: last - first]
    return joined(header, None, data[:place] + word + data[place + len(word) :])


ALL = (bits, cut, swapped, length, said, said, said, twice, arrays, arrays, numbers, numbers)
