# SPDX-License-Identifier: Apache-2.0
"""What TensorBoard's own protobuf classes read in an Event, in the words of tests/differential/decode.c.

Two sets of classes, made of the same descriptors: the stock ones, and `lenient` ones in which text is bytes (so that text which is not
UTF-8 hides nothing) and floats are the integers of their bits (so that every NaN stays the one it is). Both are the same on the wire.
"""
import hashlib
import math
import struct

from google.protobuf import descriptor_pb2, descriptor_pool, message_factory
from google.protobuf.message import DecodeError
from tensorboard.compat.proto import event_pb2

FIELD = descriptor_pb2.FieldDescriptorProto
LENIENT = {FIELD.TYPE_STRING: FIELD.TYPE_BYTES, FIELD.TYPE_FLOAT: FIELD.TYPE_FIXED32, FIELD.TYPE_DOUBLE: FIELD.TYPE_FIXED64}

# Where we differ from the classes on purpose, or the comparison looks away, and why.
EXCEPTIONS = {
    "text that is not UTF-8": "the stock classes refuse the whole Event; we keep the bytes, and who shows them decides",
    "a type above 255": "no DataType is; an extent has a byte for it, and 0 means that it has no name",
    "a type that is none of TensorFlow's": "such a tensor has no elements, and is malformed",
    "resources and variants": "we keep the bytes of their messages, the classes what they read in them: only their number is compared",
    "more than 254 dimensions": "a payload has a byte for the rank, and one value of it says unknown; such a tensor is malformed",
    "a shape of 2^32 elements or more": "cannot be a payload: malformed, whatever stands in the message",
    "one value for a shape of 256 MiB or more": "not written out, so that a few bytes cost no memory: malformed, with that one value",
    "a float scalar with content and one value": "TensorBoard's loaders differ: the payload has the content, the number is the value",
    "unknown members": "the classes keep them; we show none of them",
}

CONVERTED, CARRIED = 2, 8  # EXTENT_RECORD_...
RANK_MOST, REPEATED_BYTES_MOST, TOLD_BYTES_MOST = 254, 1 << 28, 1 << 19
RUN_GRAPH = b"__run_graph__".hex()

DTYPES = {  # number: (field, bytes of a value, values of an element, kind of number)
    1: ("float_val", 4, 1, "f"), 2: ("double_val", 8, 1, "d"), 3: ("int_val", 4, 1, "i"), 4: ("int_val", 1, 1, "B"),
    5: ("int_val", 2, 1, "h"), 6: ("int_val", 1, 1, "b"), 7: ("string_val", 0, 1, ""), 8: ("scomplex_val", 4, 2, ""),
    9: ("int64_val", 8, 1, "q"), 10: ("bool_val", 1, 1, "B"), 11: ("int_val", 1, 1, "b"), 12: ("int_val", 1, 1, "B"),
    13: ("int_val", 4, 1, "i"), 14: ("half_val", 2, 1, "bfloat16"), 15: ("int_val", 2, 1, "h"), 16: ("int_val", 2, 1, "H"),
    17: ("int_val", 2, 1, "H"), 18: ("dcomplex_val", 8, 2, ""), 19: ("half_val", 2, 1, "e"), 22: ("uint32_val", 4, 1, "I"),
    23: ("uint64_val", 8, 1, "Q"), 20: ("resource_handle_val", 0, 1, ""), 21: ("variant_val", 0, 1, ""),
    **{dtype: ("float8_val", 1, 1, "") for dtype in (24, 25, 26, 27, 28, 33)}, **{dtype: ("int_val", 1, 1, "") for dtype in (29, 30, 31, 32)},
}
DTYPES.update({100 + dtype: (*storage[:3], "") for dtype, storage in DTYPES.items()})  # references are no numbers
MESSAGES = (20, 21, 120, 121)


def softened(types):
    """The class of an Event in whose messages the types of fields are others."""
    pool = descriptor_pool.DescriptorPool()
    done = set()

    def soften(messages):
        for message in messages:
            for field in message.field:
                field.type = types.get(field.type, field.type)
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


LenientEvent = softened(LENIENT)


def hex_of_bits(bits):
    return struct.pack("<Q", bits).hex()


def number(kind, element):
    if kind == "":
        return 0.0
    if kind == "bfloat16":
        return struct.unpack("<f", b"\0\0" + element)[0]
    return float(struct.unpack("<" + kind, element)[0])


class Tensor:
    """A TensorProto as numpy would have it: its elements, each as bytes. One that does not fit its own shape has those that are there."""

    def __init__(self, proto):
        self.proto = proto
        self.field, self.width, self.each, self.kind = DTYPES.get(proto.dtype, (None, 0, 1, ""))
        self.content = proto.tensor_content if self.width else b""
        self.elements, self.malformed = self._elements()

    def _typed(self):
        values = getattr(self.proto, self.field)
        if self.proto.dtype in MESSAGES:
            return [b""] * len(values)
        if self.width == 0:
            return [bytes(value) for value in values]
        mask = (1 << 8 * self.width) - 1
        packed = [(int(value) & mask).to_bytes(self.width, "little") for value in values]
        return [b"".join(packed[i:i + self.each]) for i in range(0, len(packed) - self.each + 1, self.each)]

    def _wanted(self):
        """How many elements the shape says; None if it cannot be, or says that nobody knows."""
        shape = self.proto.tensor_shape
        sizes = [dim.size for dim in shape.dim]
        product = math.prod(sizes)
        if len(sizes) > RANK_MOST or any(size < 0 for size in sizes) or shape.unknown_rank or product >= 1 << 32:
            return None
        return product

    def _elements(self):
        """Also: are they malformed?"""
        if self.field is None:
            return [], True
        step = self.width * self.each
        found = [self.content[i:i + step] for i in range(0, len(self.content) - step + 1, step)] if self.content else self._typed()
        wanted = self._wanted()
        if wanted is None or (self.content and len(self.content) % step):
            return found, True
        if len(found) == 1 and wanted != 1 and not self.content and wanted * self._size(found[0]) <= REPEATED_BYTES_MOST:
            return Repeated(found[0], wanted), False
        return found, len(found) != wanted

    def _size(self, element):
        return self.width * self.each if self.width else 8 + len(element)

    def _number(self):
        if not self.kind:
            return 0.0
        shape = self.proto.tensor_shape
        if self.proto.dtype == 1 and not shape.dim and self.content and len(self.proto.float_val) == 1:
            return number(self.kind, self._typed()[0])
        if len(self.elements) != 1 or (self.malformed and not shape.unknown_rank):
            return 0.0
        return number(self.kind, self.elements[0])

    def told(self):
        proto = self.proto
        sizes = [dim.size for dim in proto.tensor_shape.dim]
        unknown = proto.tensor_shape.unknown_rank or len(sizes) > RANK_MOST
        out = {"dtype": proto.dtype if 0 <= proto.dtype <= 255 else 0, "shape": [] if unknown else sizes, "rank_unknown": unknown,
               "malformed": self.malformed, "elements": len(self.elements), "number": self._number()}
        is_told = not isinstance(self.elements, Repeated) or len(self.elements) * self._size(self.elements.value) <= TOLD_BYTES_MOST
        if is_told and proto.dtype not in MESSAGES:
            out["sha256"] = self._hash()
        return out

    def _hash(self):
        hashed = hashlib.sha256()
        for element in self.elements:
            if self.width == 0:
                hashed.update(struct.pack("<Q", len(element)))
            hashed.update(element)
        return hashed.hexdigest()


class Repeated:
    """One value that stands for all elements."""

    def __init__(self, value, count):
        self.value, self.count = value, count

    def __len__(self):
        return self.count

    def __getitem__(self, index):
        if not 0 <= index < self.count:
            raise IndexError(index)
        return self.value


def strings_told(*strings):
    joined = b"".join(struct.pack("<Q", len(string)) + string for string in strings)
    return {"flags": CONVERTED, "dtype": 7, "shape": [len(strings)], "sha256": hashlib.sha256(joined).hexdigest()}


def modern_told(written, message):
    """A legacy value in the form that TensorBoard's data server shows; None: it has none."""
    if written == "image":
        return strings_told(b"%d" % message.width, b"%d" % message.height, bytes(message.encoded_image_string))
    if written == "audio":
        return strings_told(bytes(message.encoded_audio_string))
    limits, buckets = list(message.bucket_limit), list(message.bucket)
    if len(limits) != len(buckets):
        return None
    rows = zip([message.min, *limits[:-1]], [*limits[:-1], message.max], buckets)
    data = b"".join(struct.pack("<QQQ", *row) for row in rows)
    return {"flags": CONVERTED, "dtype": 2, "shape": [len(buckets), 3], "sha256": hashlib.sha256(data).hexdigest()}


def value_told(value):
    written = value.WhichOneof("value") or "none"
    out = {"tag": value.tag.hex(), "written": written}
    if value.HasField("metadata"):
        m = value.metadata
        out["metadata"] = [m.plugin_data.plugin_name.hex(), m.plugin_data.content.hex(), m.display_name.hex(),
                           m.summary_description.hex(), m.data_class & 0xFFFFFFFF]
    if written == "simple_value":
        out["bits"] = value.simple_value
    elif written == "tensor":
        out["tensor"] = Tensor(value.tensor).told()
    elif written == "obsolete_old_style_histogram":
        out["data"] = value.obsolete_old_style_histogram.hex()
    elif written != "none":
        out["message"] = getattr(value, written)
        out["modern"] = modern_told(written, out["message"])
    return out


def values_told(event, what):
    if what == "summary":
        return [value_told(value) for value in event.summary.value]
    if what == "graph_def":
        return [{"tag": RUN_GRAPH, "written": what, "data": event.graph_def.hex()}]
    if what == "tagged_run_metadata":
        m = event.tagged_run_metadata
        return [{"tag": m.tag.hex(), "written": what, "data": m.run_metadata.hex()}]
    return []


def event_told(payload):
    """None: refused."""
    try:
        event = LenientEvent.FromString(payload)
    except DecodeError:
        return None
    what = event.WhichOneof("what") or "none"
    names = {"summary": "values", "graph_def": "values", "tagged_run_metadata": "values", "log_message": "other",
             "meta_graph_def": "other"}
    return {"step": event.step, "wall_time": hex_of_bits(event.wall_time), "what": names.get(what, what),
            "status": event.session_log.status, "values": values_told(event, what)}


def stock_accepts(payload):
    try:
        event_pb2.Event.FromString(payload)
    except DecodeError:
        return False
    return True


def strings_are_text(message, descriptor):
    """Is every string that the stock descriptor declares UTF-8, in this message of the lenient class?"""
    for field in descriptor.fields:
        values = getattr(message, field.name)
        if not field.is_repeated:
            values = [values] if not field.has_presence or message.HasField(field.name) else []
        if field.type == field.TYPE_STRING and not all(is_text(value) for value in values):
            return False
        if field.type == field.TYPE_MESSAGE and not all(strings_are_text(value, field.message_type) for value in values):
            return False
    return True


def is_text(value):
    try:
        value.decode()
    except UnicodeDecodeError:
        return False
    return True
