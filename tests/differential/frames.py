# SPDX-License-Identifier: Apache-2.0
"""TFRecord framing and the way past damage (tests/data/README.md, "Getting past damage"), once more and in the plainest way; and files
with damage in them."""
import struct

import crc32c

HEADER, OVERHEAD = 12, 16
ZERO_RUN = 65536


def masked(data):
    crc = crc32c.crc32c(data)
    return ((crc >> 15 | crc << 17) + 0xA282EAD8) & 0xFFFFFFFF


def framed(payload):
    length = struct.pack("<Q", len(payload))
    return length + struct.pack("<I", masked(length)) + payload + struct.pack("<I", masked(payload))


class Scanner:
    """Yields (offset, payload) of every right record; `rest` is then where reading would go on when the file has grown."""

    def __init__(self, data):
        self.data = data
        self.rest = 0

    def _length(self, at):
        """Of the right header there, or None."""
        header = self.data[at:at + HEADER]
        if len(header) < HEADER or struct.unpack("<I", header[8:])[0] != masked(header[:8]):
            return None
        return struct.unpack("<Q", header[:8])[0]

    def _next_header(self, at):
        """From there on; None if there is none."""
        return next((place for place in range(at, len(self.data) - HEADER + 1) if self._length(place) is not None), None)

    def _is_record_end(self, at):
        behind = self.data[at:]
        return not behind.strip(b"\0") or self._length(at) is not None

    def __iter__(self):
        at = 0
        while at is not None:
            self.rest = at
            length = self._length(at)
            if length is None:
                if len(self.data) - at < HEADER:
                    return
                at = self._next_header(at + 1)
                continue
            end = at + OVERHEAD + length
            if end > len(self.data):
                return
            payload = self.data[at + HEADER:end - 4]
            if struct.unpack("<I", self.data[end - 4:end])[0] == masked(payload):
                yield at, payload
            elif not self._is_record_end(end):
                end = self._next_header(at + HEADER)
            at = end


def random_file(rng, writer):
    data = bytearray()
    for _ in range(rng.randrange(1, 8)):
        data += framed(writer.payload())
        if rng.random() < 0.1:
            data += rng.choice((b"\0" * rng.randrange(1, 40), rng.randbytes(rng.randrange(1, 40)), framed(b""), framed(b"\xff")))
    for _ in range(rng.choice((0, 0, 1, 1, 2, 3))):
        at = rng.randrange(len(data) + 1)
        what = rng.randrange(6)
        if what == 0 and at < len(data):
            data[at] ^= 1 << rng.randrange(8)
        elif what == 1:
            del data[at:at + rng.randrange(1, 30)]
        elif what == 2:
            data[at:at] = rng.randbytes(rng.randrange(1, 30))
        elif what == 3:
            data[at:at + 20] = b"\0" * 20
        elif what == 4:
            data[at:at] = data[:at]
        elif rng.random() < 0.5:
            del data[at:]
    return bytes(data)
