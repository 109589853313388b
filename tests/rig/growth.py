# SPDX-License-Identifier: Apache-2.0
"""Event files of one shape in several sizes: how the work grows with them. Events of one tag and simple value but where it says so."""
import struct

import crc32c


def _masked(data):
    crc = crc32c.crc32c(data)
    return ((crc >> 15 | crc << 17) + 0xA282EAD8) & 0xFFFFFFFF


def _record(payload):
    length = struct.pack("<Q", len(payload))
    return length + struct.pack("<I", _masked(length)) + payload + struct.pack("<I", _masked(payload))


def _varint(value):
    out = bytearray()
    while value >= 0x80:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    return bytes(out) + bytes([value])


def _delimited(number, data):
    return bytes([number << 3 | 2]) + _varint(len(data)) + data


def _value(tag, number):
    return _delimited(1, _delimited(1, tag) + b"\x15" + struct.pack("<f", number))


def _event(step, values):
    return _record(b"\x09" + struct.pack("<d", 1.7e9 + step) + b"\x10" + _varint(step) + _delimited(5, values))


def records(count):
    """Ten tags, a record each step."""
    return (_event(step, _value(b"train/tag%d" % (step % 10), step)) for step in range(count))


def tags(count):
    """Each record has a tag of its own."""
    return (_event(1, _value(b"tag/%d" % number, number)) for number in range(count))


def long_tags(count):
    """Tags of 64 KB, no two alike."""
    return (_event(1, _value((b"%08d" % number) * 8192, number)) for number in range(count))


def values(count):
    """One Event with all of them."""
    yield _event(1, b"".join(_value(b"tag/%d" % (number % 10), number) for number in range(count)))


def summaries(count):
    """One Event, each value in a Summary of its own."""
    yield _record(b"".join(_delimited(5, _value(b"tag/%d" % (number % 10), number)) for number in range(count)))


def headers(count):
    """Right headers that promise half of what is left, one behind the other: each could be a damaged record."""
    for number in range(count):
        length = struct.pack("<Q", (count - number) * 6)
        yield length + struct.pack("<I", _masked(length))


# (what, the shape, how many of it in the smallest size: about 5 MB of work for the decoder)
SHAPES = (
    ("records", records, 62_500),
    ("tags in one run", tags, 62_500),
    ("tags of 64 KB", long_tags, 60),
    ("values of one Event", values, 100_000),
    ("Summaries of one Event", summaries, 100_000),
    ("right headers in damage", headers, 100_000),
)


def write(directory, shape, count):
    """Returns the size of the file in bytes."""
    directory.mkdir(parents=True)
    path = directory / "events.out.tfevents.1714557600.host.1.0"
    with open(path, "wb") as file:
        for data in shape(count):
            file.write(data)
    return path.stat().st_size
