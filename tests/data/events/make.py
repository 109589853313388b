#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Makes verdicts.jsonl: damaged and rearranged Event messages, and what TensorBoard's own protobuf classes read in them.

    build/venv/bin/python tests/data/events/make.py > tests/data/events/verdicts.jsonl

Each line is one payload (hex) and either "accepted": false, or its values. Strings are declared as bytes, so that text which is not
UTF-8 hides nothing. A tensor is told as in the goldens (tests/data/README.md), and so is what TensorBoard's data server makes of a
legacy image, audio or histogram; `modern` is null for a histogram whose lists do not fit. The types of tensors.proto that the
goldens leave out are told, too: resources and variants as the bytes of their messages, those of few bits as a byte for each
element; of a tensor that does not fit its shape, the elements that are there. The same lines come out each time.
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
    18: ("dcomplex_val", "dd"), 19: ("half_val", "H"), 20: ("resource_handle_val", None), 21: ("variant_val", None),
    22: ("uint32_val", "I"), 23: ("uint64_val", "Q"), **{dtype: ("float8_val", "B") for dtype in (24, 25, 26, 27, 28, 33)},
    **{dtype: ("int_val", "B") for dtype in (29, 30, 31, 32)},
}
DTYPES.update({100 + dtype: storage for dtype, storage in DTYPES.items()})


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


def rare_tensors(event_class):
    """Types that no writer of the fixtures uses, in every storage: of one element, several, repeated, and not fitting."""
    for dtype in (*range(20, 34), 101, 107, 120, 124, 130, 34, 134, 200):
        for count, shape in ((1, []), (3, [3]), (1, [2, 2]), (0, [0]), (2, [3])):
            event = event_class(step=count)
            for storage in ("typed", "content"):
                value = event.summary.value.add(tag=storage.encode())
                value.tensor.dtype = dtype
                for size in shape:
                    value.tensor.tensor_shape.dim.add(size=size)
                data = bytes(range(250, 250 + count))
                if storage == "content":
                    value.tensor.tensor_content = data * (4 if dtype in (22, 101) else 8 if dtype == 23 else 1)
                    continue
                value.tensor.float8_val = data
                value.tensor.int_val.extend(-n for n in range(count))
                value.tensor.float_val.extend(range(count))
                value.tensor.string_val.extend([b"s"] * count)
                value.tensor.uint32_val.extend(range(count))
                value.tensor.uint64_val.extend(range(count))
                for n in range(count):
                    value.tensor.resource_handle_val.add(device=b"d", name=b"n%d" % n)
                    value.tensor.variant_val.add(type_name=b"t%d" % n, metadata=b"m")
            yield event.SerializeToString()


def legacy(event_class):
    """Legacy values whole, empty, written twice (messages merge, numbers and lists on both sides), and lists that do not fit."""
    histograms = [((-1.5, 2.5), (0.0, 1.0, 2.0), (3.0, 0.0, 4.0)), ((0, 0), (), ()), ((7.0, 7.0), (7.0,), (1.0,)),
                  ((float("nan"), float("inf")), (-0.0, float("-inf")), (1e308, 5e-324)), ((0, 1), (1.0, 2.0), (1.0,)), ((0, 0), (), (2.0,))]
    values = []
    for (low, high), limits, buckets in histograms:
        value = event_class().summary.value.add()
        value.histo.min, value.histo.max = low, high
        value.histo.bucket_limit.extend(limits)
        value.histo.bucket.extend(buckets)
        values.append(value)
    for width, height, data in ((3, 2, b"png"), (0, 0, b""), (-1, -2147483648, b"x"), (2147483647, 0, b"\0")):
        value = event_class().summary.value.add()
        value.image.width, value.image.height, value.image.encoded_image_string = width, height, data
        values.append(value)
    for data in (b"", b"RIFF", b"\0" * 100):
        value = event_class().summary.value.add()
        value.audio.encoded_audio_string, value.audio.sample_rate, value.audio.content_type = data, 8000, b"audio/wav"
        values.append(value)
    for first in values:
        for second in [None, *values]:
            data = b"\x0a\x01t" + first.SerializeToString() + (second.SerializeToString() if second else b"")
            summary = b"\x0a" + varint(len(data)) + data
            yield b"\x2a" + varint(len(summary)) + summary


def varint(number):
    return bytes([number]) if number < 128 else bytes([number & 127 | 128]) + varint(number >> 7)


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
        out["malformed"], data = True, held(t)
    out["sha256"] = hashlib.sha256(data).hexdigest()
    return out


def values_of(t):
    field, code = DTYPES[t.dtype]
    values = list(getattr(t, field))
    return list(zip(values[0::2], values[1::2])) if code and len(code) == 2 else values


def elements(t):
    """None if they are not those that the shape says."""
    if t.dtype not in DTYPES:
        return None
    code = DTYPES[t.dtype][1]
    count = 1
    for dim in t.tensor_shape.dim:
        if dim.size < 0:
            return None
        count *= dim.size
    if code and t.tensor_content:
        return t.tensor_content if len(t.tensor_content) == count * struct.calcsize("<" + code) else None
    if count > 1 << 20:
        return None
    values = values_of(t)
    if len(values) == 1:
        values *= count
    return joined(code, values) if len(values) == count else None


def held(t):
    """Whatever whole elements are there."""
    if t.dtype not in DTYPES:
        return b""
    code = DTYPES[t.dtype][1]
    if code and t.tensor_content:
        return t.tensor_content[:len(t.tensor_content) // struct.calcsize("<" + code) * struct.calcsize("<" + code)]
    return joined(code, values_of(t))


def joined(code, values):
    if code is None:
        values = [v if isinstance(v, bytes) else v.SerializeToString() for v in values]
        return b"".join(struct.pack("<Q", len(v)) + v for v in values)
    return b"".join(element(code, v) for v in values)


def element(code, value):
    if len(code) == 2:
        return struct.pack("<" + code, *value)
    if code in "bBhHiIqQ":
        width = struct.calcsize("<" + code)
        return (value & ((1 << 8 * width) - 1)).to_bytes(width, "little")
    return struct.pack("<" + code, value)


def histogram(h):
    if len(h.bucket) != len(h.bucket_limit):
        return None
    lefts, rights = [h.min, *h.bucket_limit[:-1]], [*h.bucket_limit[:-1], h.max]
    rows = b"".join(struct.pack("<ddd", *row) for row in zip(lefts, rights, h.bucket))
    return {"dtype": 2, "shape": [len(h.bucket), 3], "sha256": hashlib.sha256(rows).hexdigest()}


def blobs(*strings):
    data = b"".join(struct.pack("<Q", len(s)) + s for s in strings)
    return {"dtype": 7, "shape": [len(strings)], "sha256": hashlib.sha256(data).hexdigest()}


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
    elif what == "histo":
        line["modern"] = histogram(value.histo)
    elif what == "image":
        line["modern"] = blobs(b"%d" % value.image.width, b"%d" % value.image.height, value.image.encoded_image_string)
    elif what == "audio":
        line["modern"] = blobs(value.audio.encoded_audio_string)
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
    for data in (*rare_tensors(event_class), *legacy(event_class)):
        print(json.dumps(verdict(data, event_class), separators=(",", ":")))


if __name__ == "__main__":
    sys.exit(main())
