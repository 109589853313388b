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
    "a type without elements here": "how a tensor of a type outside of DTYPES is carried is not the decoder's matter: only type and shape",
    "more than 254 dimensions": "a payload has a byte for the rank, and one value of it says unknown; such a tensor is malformed",
    "a shape of 2^32 elements or more": "cannot be a payload: malformed, whatever stands in the message",
    "one value for a shape of 256 MiB or more": "not written out, so that a few bytes cost no memory: malformed",
    "a float scalar with content and one value": "TensorBoard's loaders differ: the payload has the content, the number is the value",
    "unknown members": "the classes keep them; we show none of them",
}

RANK_MOST, REPEATED_BYTES_MOST, TOLD_BYTES_MOST = 254, 1 << 28, 1 << 19
RUN_GRAPH = b"__run_graph__".hex()

DTYPES = {  # number: (field, bytes of a value, values of an element, kind of number)
    1: ("float_val", 4, 1, "f"), 2: ("double_val", 8, 1, "d"), 3: ("int_val", 4, 1, "i"), 4: ("int_val", 1, 1, "B"),
    5: ("int_val", 2, 1, "h"), 6: ("int_val", 1, 1, "b"), 7: ("string_val", 0, 1, ""), 8: ("scomplex_val", 4, 2, ""),
    9: ("int64_val", 8, 1, "q"), 10: ("bool_val", 1, 1, "B"), 11: ("int_val", 1, 1, "b"), 12: ("int_val", 1, 1, "B"),
    13: ("int_val", 4, 1, "i"), 14: ("half_val", 2, 1, "bfloat16"), 15: ("int_val", 2, 1, "h"), 16: ("int_val", 2, 1, "H"),
    17: ("int_val", 2, 1, "H"), 18: ("dcomplex_val", 8, 2, ""), 19: ("half_val", 2, 1, "e"), 22: ("uint32_val", 4, 1, "I"),
    23: ("uint64_val", 8, 1, "Q"),
}


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
    """A TensorProto as numpy would have it: its elements, each as bytes, or None if it does not fit its own shape."""

    def __init__(self, proto):
        self.proto = proto
        self.field, self.width, self.each, self.kind = DTYPES.get(proto.dtype, (None, 0, 1, ""))
        self.elements = self._elements()

    def _typed(self):
        values = getattr(self.proto, self.field)
        if self.width == 0:
            return [bytes(value) for value in values]
        mask = (1 << 8 * self.width) - 1
        packed = [(int(value) & mask).to_bytes(self.width, "little") for value in values]
        return [b"".join(packed[i:i + self.each]) for i in range(0, len(packed) - self.each + 1, self.each)]

    def _wanted(self, found):
        """How many elements the shape says; None if it cannot be."""
        shape = self.proto.tensor_shape
        sizes = [dim.size for dim in shape.dim]
        product = math.prod(sizes)
        if len(sizes) > RANK_MOST or any(size < 0 for size in sizes):
            return None
        if shape.unknown_rank:
            return found if math.prod(size for size in sizes if size > 0) < 1 << 64 or 0 in sizes else None
        return product if product < 1 << 32 else None

    def _elements(self):
        if self.field is None:
            return None
        content = self.proto.tensor_content if self.width else b""
        if content:
            step = self.width * self.each
            if len(content) % step:
                return None
            found = [content[i:i + step] for i in range(0, len(content), step)]
        else:
            found = self._typed()
        wanted = self._wanted(len(found))
        if wanted is None or len(found) == wanted:
            return None if wanted is None else found
        if len(found) != 1 or content:
            return None
        return Repeated(found[0], wanted) if wanted * self._size(found[0]) <= REPEATED_BYTES_MOST else None

    def _size(self, element):
        return self.width * self.each if self.width else 8 + len(element)

    def _number(self):
        if self.elements is None or len(self.elements) != 1:
            return 0.0
        shape = self.proto.tensor_shape
        scalar = not shape.dim or shape.unknown_rank
        if self.proto.dtype == 1 and scalar and len(self.proto.float_val) == 1:
            return number(self.kind, self._typed()[0])
        return number(self.kind, self.elements[0])

    def told(self):
        proto = self.proto
        sizes = [dim.size for dim in proto.tensor_shape.dim]
        unknown = proto.tensor_shape.unknown_rank or len(sizes) > RANK_MOST
        out = {"dtype": proto.dtype if 0 <= proto.dtype <= 255 else 0, "shape": [] if unknown else sizes, "rank_unknown": unknown}
        if self.field is None:
            return out
        out["malformed"] = self.elements is None or proto.tensor_shape.unknown_rank
        out["elements"] = 0 if self.elements is None else len(self.elements)
        out["number"] = self._number()
        if self.elements is not None:
            if not isinstance(self.elements, Repeated) or len(self.elements) * self._size(self.elements.value) <= TOLD_BYTES_MOST:
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
