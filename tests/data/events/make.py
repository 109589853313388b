#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Makes verdicts.jsonl: damaged and rearranged Event messages, and what TensorBoard's own protobuf classes read in them.

    build/venv/bin/python tests/data/events/make.py > tests/data/events/verdicts.jsonl

Each line is one payload (hex) and either "accepted": false, or its values. Strings are declared as bytes, so that text which is not
UTF-8 hides nothing. A tensor is told as in the goldens (tests/data/README.md). The same lines come out each time.
"""
import hashlib
import json
import pathlib
import random
import struct
import sys

from google.protobuf import descriptor_pb2, descriptor_pool, message_factory
from google.protobuf.message import DecodeError
from tensorboard.compat.proto import event_pb2

FIXTURES = pathlib.Path(__file__).resolve().parent.parent / "fixtures"
TREES = ("wire", "metadata", "tensors", "numbers", "torch", "tf2", "rust", "steps")
LARGEST = 420
MUTANTS = 6
DTYPES = {  # number: (field, struct code of an element)
    1: ("float_val", "f"), 2: ("double_val", "d"), 3: ("int_val", "i"), 4: ("int_val", "B"), 5: ("int_val", "h"), 6: ("int_val", "b"),
    7: ("string_val", None), 8: ("scomplex_val", "ff"), 9: ("int64_val", "q"), 10: ("bool_val", "?"), 11: ("int_val", "b"),
    12: ("int_val", "B"), 13: ("int_val", "i"), 14: ("half_val", "H"), 15: ("int_val", "h"), 16: ("int_val", "H"), 17: ("int_val", "H"),
    18: ("dcomplex_val", "dd"), 19: ("half_val", "H"), 22: ("uint32_val", "I"), 23: ("uint64_val", "Q"),
}


def lenient_event():
    pool = descriptor_pool.DescriptorPool()
    done = set()

    def soften(messages):
        for message in messages:
            for field in message.field:
                if field.type == field.TYPE_STRING:
                    field.type = field.TYPE_BYTES
            soften(message.nested_type)

    def add(descriptor):
        if descriptor.name in done:
            return
        done.add(descriptor.name)
        for dependency in descriptor.dependencies:
            add(dependency)
        proto = descriptor_pb2.FileDescriptorProto()
        descriptor.CopyToProto(proto)
        soften(proto.message_type)
        pool.Add(proto)

    add(event_pb2.DESCRIPTOR)
    return message_factory.GetMessageClass(pool.FindMessageTypeByName("tensorboard.Event"))


def payloads():
    for tree in TREES:
        for path in sorted((FIXTURES / tree).rglob("*tfevents*")):
            data = path.read_bytes() if path.is_file() else b""
            at = 0
            while at + 16 <= len(data):
                (size,) = struct.unpack_from("<Q", data, at)
                if size > len(data) - at - 16:
                    break
                if size <= LARGEST:
                    yield data[at + 12:at + 12 + size]
                at += 16 + size


def mutated(payload, rng, others):
    data = bytearray(payload)
    for _ in range(rng.choice((1, 1, 1, 2, 4))):
        at = rng.randrange(len(data) + 1)
        what = rng.randrange(7)
        if what == 0 and at < len(data):
            data[at] ^= 1 << rng.randrange(8)
        elif what == 1 and at < len(data):
            data[at] = rng.choice((0, 1, 0x0A, 0x12, 0x2A, 0x4A, 0x7F, 0x80, 0xFF, 0x0B, 0x0C))
        elif what == 2:
            del data[at:at + rng.randrange(1, 5)]
        elif what == 3:
            data[at:at] = bytes(rng.randrange(256) for _ in range(rng.randrange(1, 5)))
        elif what == 4:
            del data[at:]
        elif what == 5:
            data += rng.choice(others)[:LARGEST]
        else:
            data[at:at] = b"\x80" * rng.randrange(1, 11)
    return bytes(data[:2 * LARGEST])


def tensor(t):
    out = {"dtype": t.dtype, "shape": [d.size for d in t.tensor_shape.dim]}
    data = None if t.tensor_shape.unknown_rank else elements(t)
    if data is None:
        out["malformed"] = True
    else:
        out["sha256"] = hashlib.sha256(data).hexdigest()
    return out


def elements(t):
    if t.dtype not in DTYPES:
        return None
    field, code = DTYPES[t.dtype]
    count = 1
    for dim in t.tensor_shape.dim:
        if dim.size < 0:
            return None
        count *= dim.size
    if code and t.tensor_content:
        return t.tensor_content if len(t.tensor_content) == count * struct.calcsize("<" + code) else None
    values = list(getattr(t, field))
    if code and len(code) == 2:
        values = list(zip(values[0::2], values[1::2]))
    if count > 1 << 20:
        return None
    if len(values) == 1:
        values *= count
    if len(values) != count:
        return None
    if code is None:
        return b"".join(struct.pack("<Q", len(v)) + v for v in values)
    return b"".join(element(code, v) for v in values)


def element(code, value):
    if len(code) == 2:
        return struct.pack("<" + code, *value)
    if code in "bBhHiIqQ":
        width = struct.calcsize("<" + code)
        return (value & ((1 << 8 * width) - 1)).to_bytes(width, "little")
    return struct.pack("<" + code, value)


def value_line(value):
    what = value.WhichOneof("value")
    line = {"tag": value.tag.hex(), "written": what or "none"}
    if value.HasField("metadata"):
        m = value.metadata
        line["metadata"] = [m.plugin_data.plugin_name.hex(), m.plugin_data.content.hex(), m.display_name.hex(), m.summary_description.hex(),
                            m.data_class & 0xFFFFFFFF]
    if what == "simple_value":
        line["bits"] = struct.unpack("<I", struct.pack("<f", value.simple_value))[0]
    elif what == "tensor":
        line["tensor"] = tensor(value.tensor)
    return line


def verdict(payload, event_class):
    line = {"payload": payload.hex(), "accepted": True}
    try:
        event = event_class.FromString(payload)
    except DecodeError:
        return dict(line, accepted=False)
    line["step"] = event.step
    line["wall_time"] = struct.pack("<d", event.wall_time).hex()
    line["what"] = event.WhichOneof("what") or "none"
    line["values"] = [value_line(v) for v in event.summary.value]
    if line["what"] == "session_log":
        line["status"] = event.session_log.status
    elif line["what"] == "tagged_run_metadata":
        line["tag"], line["data"] = event.tagged_run_metadata.tag.hex(), event.tagged_run_metadata.run_metadata.hex()
    elif line["what"] == "graph_def":
        line["data"] = event.graph_def.hex()
    return line


def main():
    rng = random.Random(20240501)
    event_class = lenient_event()
    known = list(dict.fromkeys(payloads()))
    chosen = known if len(known) < 260 else rng.sample(known, 260)
    for payload in chosen:
        for data in [payload] + [mutated(payload, rng, known) for _ in range(MUTANTS)]:
            print(json.dumps(verdict(data, event_class), separators=(",", ":")))


if __name__ == "__main__":
    sys.exit(main())
