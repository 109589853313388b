# SPDX-License-Identifier: Apache-2.0
"""Random Events on the wire, and event files of them.

Bytes are made from the descriptors of TensorBoard's messages rather than by its serializer, because a serializer writes each thing in
one way only: here fields come in any order and again, numbers packed and not, varints longer than they need be, with unknown fields,
groups and wrong wire types between them. A part of what comes out is damaged on top.
"""
import struct

from google.protobuf import descriptor
from tensorboard.compat.proto import event_pb2

F = descriptor.FieldDescriptor
EVENT = event_pb2.Event.DESCRIPTOR
VALUE = EVENT.fields_by_name["summary"].message_type.fields_by_name["value"].message_type
TENSOR = VALUE.fields_by_name["tensor"].message_type
VARINT, FIXED64, BYTES, GROUP, GROUP_END, FIXED32 = range(6)
WIRE_TYPES = {F.TYPE_DOUBLE: FIXED64, F.TYPE_FLOAT: FIXED32, F.TYPE_STRING: BYTES, F.TYPE_BYTES: BYTES, F.TYPE_MESSAGE: BYTES}
INTEGERS = (0, 1, 2, 3, 7, 10, 20, 127, 128, 255, 256, 300, 0x7FFF, 0x8000, 0xFFFF, 1 << 31, (1 << 32) - 1, 1 << 32, 1 << 62, (1 << 63) - 1,
            1 << 63, (1 << 64) - 1)
TEXTS = (b"", b"a", b"loss/train", b"scalars", b"images", b"\xc3\xa9", b"\xe2\x82\xac", b"\xff", b"\xc3", b"\xed\xa0\x80", b"\0", b"x" * 200)
FLOATS = (0, 0x3F800000, 0x80000000, 0x7F800000, 0xFF800000, 0x7FC00000, 0x7F800001, 0xFFFFFFFF, 1, 0x7F7FFFFF)
DOUBLES = (0, 0x3FF0000000000000, 1 << 63, 0x7FF0000000000000, 0x7FF8000000000000, 0x7FF0000000000001, (1 << 64) - 1, 0x41D98C84A9E00000)
# dtype: (number of the field, wire type, bytes of an element in content), most of them as they should be
STORED = {1: (5, FIXED32, 4), 2: (6, FIXED64, 8), 3: (7, VARINT, 4), 4: (7, VARINT, 1), 5: (7, VARINT, 2), 6: (7, VARINT, 1),
          7: (8, BYTES, 0), 8: (9, FIXED32, 8), 9: (10, VARINT, 8), 10: (11, VARINT, 1), 11: (7, VARINT, 1), 12: (7, VARINT, 1),
          13: (7, VARINT, 4), 14: (13, VARINT, 2), 15: (7, VARINT, 2), 16: (7, VARINT, 2), 17: (7, VARINT, 2), 18: (12, FIXED64, 16),
          19: (13, VARINT, 2), 20: (14, BYTES, 0), 21: (15, BYTES, 0), 22: (16, VARINT, 4), 23: (17, VARINT, 8), 24: (18, BYTES, 1),
          29: (7, VARINT, 1), 101: (5, FIXED32, 4), 300: (5, FIXED32, 4)}
DEPTH_MOST = 6


class Writer:
    def __init__(self, rng):
        self.rng = rng

    # ---- scraps ----

    def varint(self, value, key=False):
        out = bytearray()
        while value >= 0x80:
            out.append(value & 0x7F | 0x80)
            value >>= 7
        out.append(value)
        if self.rng.random() < 0.03:  # longer than it need be, sometimes than it may
            most = (5 if key else 10) + (self.rng.random() < 0.1)
            while len(out) < most and self.rng.random() < 0.8:
                out[-1] |= 0x80
                out.append(0)
            if len(out) == 10 and self.rng.random() < 0.3:
                out[-1] = self.rng.choice((1, 2, 0x7F))  # bits past 64
        return bytes(out)

    def key(self, number, wire_type):
        return self.varint(number << 3 | wire_type, key=True)

    def delimited(self, number, data):
        return self.key(number, BYTES) + self.varint(len(data)) + data

    def integer(self):
        return self.rng.choice(INTEGERS) if self.rng.random() < 0.6 else self.rng.getrandbits(self.rng.choice((3, 7, 8, 16, 32, 64)))

    def fixed(self, wire_type):
        if wire_type == FIXED32:
            return struct.pack("<I", self.rng.choice(FLOATS) if self.rng.random() < 0.3 else self.rng.getrandbits(32))
        return struct.pack("<Q", self.rng.choice(DOUBLES) if self.rng.random() < 0.3 else self.rng.getrandbits(64))

    def scrap(self, wire_type):
        """A value of that type without its key."""
        if wire_type == VARINT:
            return self.varint(self.integer())
        if wire_type == BYTES:
            data = self.rng.choice(TEXTS)
            return self.varint(len(data)) + data
        return self.fixed(wire_type)

    def group(self, number, depth):
        inside = b"".join(self.unknown(depth + 1) for _ in range(self.rng.choice((0, 1, 2)))) if depth < 4 else b""
        end = number if self.rng.random() < 0.97 else number + 1
        return self.key(number, GROUP) + inside + (self.key(end, GROUP_END) if self.rng.random() < 0.97 else b"")

    def unknown(self, depth=0):
        number = self.rng.choice((0, 19, 31, 500, 1 << 20, (1 << 29) - 1)) if self.rng.random() < 0.2 else self.rng.randrange(1, 40)
        wire_type = self.rng.choice((VARINT, FIXED64, BYTES, GROUP, FIXED32))
        if self.rng.random() < 0.01:
            return self.key(number, self.rng.choice((GROUP_END, 6, 7)))
        return self.group(number, depth) if wire_type == GROUP else self.key(number, wire_type) + self.scrap(wire_type)

    # ---- messages ----

    def field(self, field, depth):
        wire_type = WIRE_TYPES.get(field.type, VARINT)
        if field.type == F.TYPE_MESSAGE:
            return self.delimited(field.number, self.message(field.message_type, depth + 1))
        if self.rng.random() < 0.02:
            wrong = self.rng.choice((VARINT, FIXED64, BYTES, FIXED32))
            return self.key(field.number, wrong) + self.scrap(wrong)
        if field.is_repeated and wire_type != BYTES:
            return self.numbers(field.number, wire_type, self.rng.choice((0, 1, 1, 2, 5)))
        return self.key(field.number, wire_type) + self.scrap(wire_type)

    def numbers(self, number, wire_type, count):
        """Packed, one by one, or some of each."""
        if wire_type == BYTES:
            return b"".join(self.key(number, BYTES) + self.scrap(BYTES) for _ in range(count))
        packed = self.rng.choice((0, count, count, self.rng.randrange(count + 1)))
        single = [self.key(number, wire_type) + self.scrap(wire_type) for _ in range(count - packed)]
        if packed or self.rng.random() < 0.05:
            single.insert(self.rng.randrange(len(single) + 1), self.delimited(number, b"".join(self.scrap(wire_type) for _ in range(packed))))
        return b"".join(single)

    def message(self, of, depth=0):
        """A message of that type with some of its fields."""
        if of is TENSOR and self.rng.random() < 0.7:
            return self.tensor(depth)
        parts = []
        for _ in range(self.rng.choice((0, 1, 2, 3, 4)) if depth < DEPTH_MOST else 0):
            field = self.rng.choice(of.fields)
            parts.append(self.unknown() if self.rng.random() < 0.06 else self.field(field, depth))
        return b"".join(parts)

    def shape(self, count):
        """Dimensions of count elements, mostly."""
        sizes = self.rng.choice(([count], [1, count], [count, 1, 1], [], [count + 1], [0], [count, 0], [1 << 62, 1 << 62], [(1 << 64) - 1]))
        if count == 1 and self.rng.random() < 0.6:
            sizes = []
        if self.rng.random() < 0.003:
            sizes = [1] * self.rng.choice((254, 255))
        data = b"".join(self.delimited(2, (self.key(1, VARINT) + self.varint(size)) if size or self.rng.random() < 0.5 else b"")
                        for size in sizes)
        return data + (self.key(3, VARINT) + self.scrap(VARINT) if self.rng.random() < 0.05 else b"")

    def tensor(self, depth):
        dtype = self.rng.choice(list(STORED)) if self.rng.random() < 0.6 else self.rng.choice((1, 2, 3, 7, 9, 19))
        number, wire_type, width = STORED[dtype]
        count = self.rng.choice((0, 1, 1, 1, 2, 3, 6))
        values = count * (2 if dtype in (8, 18) else 1)
        parts = [self.key(1, VARINT) + self.varint(dtype), self.delimited(2, self.shape(count))]
        if width and self.rng.random() < 0.4:
            parts.append(self.delimited(4, self.rng.randbytes(count * width)))
        if len(parts) == 2 or self.rng.random() < 0.1:
            parts.append(self.numbers(number, wire_type, self.rng.choice((values, values, values, 1))))
        while self.rng.random() < 0.15:
            parts.append(self.unknown() if self.rng.random() < 0.4 else self.field(self.rng.choice(TENSOR.fields), depth))
        if self.rng.random() < 0.3:
            self.rng.shuffle(parts)
        return b"".join(parts)

    def value(self):
        kind = self.rng.choice(("simple_value", "simple_value", "tensor", "tensor", "tensor", "image", "histo", "audio",
                                "obsolete_old_style_histogram", ""))
        parts = [self.delimited(1, self.rng.choice(TEXTS))]
        if kind:
            parts.append(self.field(VALUE.fields_by_name[kind], 2))
        if self.rng.random() < 0.4:
            parts.append(self.delimited(9, self.message(VALUE.fields_by_name["metadata"].message_type, 2)))
        while self.rng.random() < 0.1:
            parts.append(self.unknown() if self.rng.random() < 0.4 else self.field(self.rng.choice(VALUE.fields), 2))
        if self.rng.random() < 0.2:
            self.rng.shuffle(parts)
        return b"".join(parts)

    def summary(self):
        return b"".join(self.delimited(1, self.value()) if self.rng.random() < 0.97 else self.unknown()
                        for _ in range(self.rng.choice((0, 1, 1, 1, 2, 4))))

    def nested(self):
        """Tensors in variants in tensors, or groups in groups, about as deep as is allowed."""
        depth, data = self.rng.randrange(85, 105), b""
        if self.rng.random() < 0.5:
            for i in range(depth):
                data = self.delimited((15, 3)[i % 2], data)
            return self.delimited(5, self.delimited(1, self.delimited(8, data)))
        return b"".join(self.key(30, GROUP) for _ in range(depth)) + b"".join(self.key(30, GROUP_END) for _ in range(depth))

    def event(self):
        if self.rng.random() < 0.1:
            return self.message(EVENT)
        parts = [self.key(1, FIXED64) + self.fixed(FIXED64), self.key(2, VARINT) + self.varint(self.integer())]
        for _ in range(self.rng.choice((1, 1, 1, 1, 2, 3))):
            parts.append(self.delimited(5, self.summary()) if self.rng.random() < 0.85 else self.field(self.rng.choice(EVENT.fields), 0))
        if self.rng.random() < 0.01:
            parts.append(self.nested())
        while self.rng.random() < 0.08:
            parts.append(self.unknown())
        if self.rng.random() < 0.15:
            self.rng.shuffle(parts)
        return b"".join(parts)

    # ---- damage ----

    def damaged(self, data):
        data = bytearray(data)
        for _ in range(self.rng.choice((1, 1, 1, 2, 4))):
            at = self.rng.randrange(len(data) + 1)
            what = self.rng.randrange(7)
            if what == 0 and at < len(data):
                data[at] ^= 1 << self.rng.randrange(8)
            elif what == 1 and at < len(data):
                data[at] = self.rng.choice((0, 1, 0x0A, 0x12, 0x2A, 0x42, 0x4A, 0x7F, 0x80, 0xFF, 0x0B, 0x0C))
            elif what == 2:
                del data[at:at + self.rng.randrange(1, 5)]
            elif what == 3:
                data[at:at] = self.rng.randbytes(self.rng.randrange(1, 5))
            elif what == 4:
                del data[at:]
            elif what == 5:
                data[at:at] = data[:self.rng.randrange(len(data) + 1)]
            else:
                data[at:at] = b"\x80" * self.rng.randrange(1, 11)
        return bytes(data)

    def payload(self):
        data = self.event()
        return self.damaged(data) if self.rng.random() < 0.4 else data
