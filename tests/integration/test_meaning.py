# SPDX-License-Identifier: Apache-2.0
"""The rules of docs/TENSORBOARD.md, one test each: events of TensorBoard's own protobuf classes, through a daemon, as `headrace dump`
tells them. What all fixtures give: test_goldens.py."""
import base64
import json
import os
import pathlib
import struct
import subprocess

import crc32c
import numpy
import pytest
from tensorboard import data_compat, dataclass_compat
from tensorboard.compat.proto import event_pb2, summary_pb2, types_pb2
from tensorboard.util.tensor_util import make_ndarray

TOP = pathlib.Path(__file__).resolve().parents[2]
BUILD = pathlib.Path(os.environ.get("HEADRACE_BUILD", TOP / "build"))


def record(payload):
    def masked(data):
        crc = crc32c.crc32c(data)
        return struct.pack("<I", ((crc >> 15 | crc << 17) + 0xA282EAD8) & 0xFFFFFFFF)

    length = struct.pack("<Q", len(payload))
    return length + masked(length) + payload + masked(payload)


class Log:
    """A log directory; steps count up by themselves."""

    def __init__(self, path):
        self.path, self.step = path, 0

    def event(self, file="a.tfevents.1", run=".", payload=None, **members):
        self.step += 1
        event = event_pb2.Event(wall_time=1714557600.0 + self.step, step=self.step, **members)
        (self.path / run).mkdir(exist_ok=True)
        with open(self.path / run / file, "ab") as out:
            out.write(record(event.SerializeToString() if payload is None else payload))

    def value(self, tag="t", file="a.tfevents.1", run=".", **members):
        self.event(file, run, summary=summary_pb2.Summary(value=[summary_pb2.Summary.Value(tag=tag, **members)]))

    def dump(self, *arguments):
        done = subprocess.run([BUILD / "headrace", "dump", self.path, *arguments], capture_output=True, timeout=60, check=True)
        return [json.loads(line) for line in done.stdout.splitlines()]


@pytest.fixture
def log(tmp_path):
    (tmp_path / "log").mkdir()
    return Log(tmp_path / "log")


def metadata(plugin="", content=b"", data_class=0, **texts):
    return summary_pb2.SummaryMetadata(plugin_data={"plugin_name": plugin, "content": content}, data_class=data_class, **texts)


def tensor(dtype, shape=(), **values):
    return {"dtype": dtype, "tensor_shape": {"dim": [{"size": size} for size in shape]}, **values}


def blobs(line):
    return [base64.b64decode(blob["base64"]) for blob in line["blobs"]]


HISTOGRAM = {"min": -1.0, "max": 3.0, "bucket_limit": [-2.0, 0.0, 1.0, 5.0], "bucket": [0.0, 2.0, 3.0, 0.0]}

# ---- Where the loaders differ ----------------------------------------------------------------------------------------------------


def test_histogram_keeps_its_buckets(log):
    log.value(histo=HISTOGRAM)
    (line,) = log.dump("--payload", "full")
    assert (line["kind"], line["dtype"], line["shape"], line["plugin"], line["class"]) == ("tensor", "DT_DOUBLE", [4, 3], "histograms", "tensor")
    assert line["data"] == [-1.0, -2.0, 0.0, -2.0, 0.0, 2.0, 0.0, 1.0, 3.0, 1.0, 3.0, 0.0]


def test_content_of_legacy_audio(log):
    log.value(audio={"encoded_audio_string": b"RIFF", "sample_rate": 8000, "content_type": "audio/wav"})
    (line,) = log.dump("--payload", "full")
    assert (line["plugin"], line["content"], line["class"], blobs(line)) == ("audio", "1801", "blobs", [b"RIFF"])


def test_image_is_width_height_and_bytes(log):
    log.value(image={"width": 640, "height": 480, "colorspace": 3, "encoded_image_string": b"\x89PNG"})
    (line,) = log.dump("--payload", "full")
    assert (line["plugin"], line["content"], line["class"]) == ("images", "1001", "blobs")
    assert blobs(line) == [b"640", b"480", b"\x89PNG"]


def test_given_class_wins_over_the_kind(log):
    log.value(simple_value=1, metadata=metadata("mine", b"\x01", 1))
    (line,) = log.dump()
    assert (line["kind"], line["plugin"], line["content"], line["class"]) == ("scalar", "mine", "01", "scalar")


def test_kind_wins_over_a_plugin_without_class(log):
    log.value(simple_value=1, metadata=metadata("images", b"\x01"))
    (line,) = log.dump()
    assert (line["kind"], line["plugin"], line.get("content"), line["class"]) == ("scalar", "scalars", None, "scalar")


def test_text_without_a_value(log):
    log.value(metadata=metadata("text"))
    (line,) = log.dump("--payload", "full")
    assert (line["kind"], line["dtype"], line["shape"], line["data"], line["class"]) == ("tensor", "DT_FLOAT", [0], [], "tensor")


def test_node_name_is_no_tag(log):
    log.value(tag="", node_name="node", simple_value=1)
    (line,) = log.dump()
    assert line["tag"] == ""


def test_meta_graph_is_no_value(log):
    log.event(meta_graph_def=b"\x0a\x00")
    log.event(graph_def=b"graph")
    (line,) = log.dump("--payload", "full")
    assert (line["tag"], line["plugin"], line["class"], blobs(line)) == ("__run_graph__", "graphs", "blobs", [b"graph"])


def test_run_metadata_without_a_tag(log):
    log.event(tagged_run_metadata={"run_metadata": b"trace"})
    (line,) = log.dump("--payload", "full")
    assert (line["tag"], line["plugin"], blobs(line)) == ("", "graph_tagged_run_metadata", [b"trace"])


def test_typed_value_of_a_scalar(log):
    both = tensor(1, float_val=[1.0], tensor_content=struct.pack("<f", 2.0))
    log.value("scalar", tensor=both, metadata=metadata("scalars"))
    log.value("tensor", tensor=both, metadata=metadata("text"))
    log.value("long", tensor=tensor(1, float_val=[1.0], tensor_content=bytes(8)), metadata=metadata("scalars"))
    assert {line["tag"]: (line["kind"], line["value"]) for line in log.dump()} == \
        {"scalar": ("scalar", 1.0), "tensor": ("tensor", 2.0), "long": ("scalar", 1.0)}


def test_one_string_for_a_shape_is_one_blob(log):
    one = tensor(7, [3], string_val=[b"s"])
    log.value("blobs", tensor=one, metadata=metadata("images"))
    log.value("tensor", tensor=one, metadata=metadata("text"))
    lines = {line["tag"]: line for line in log.dump("--payload", "full")}
    assert blobs(lines["blobs"]) == [b"s"]
    assert lines["tensor"]["data"] == ["s", "s", "s"]


def test_labels_of_audio(log):
    table = tensor(7, [2, 2], string_val=[b"one", b"label", b"two", b"label"])
    log.value("audio", tensor=table, metadata=metadata("audio"))
    log.value("other", tensor=table, metadata=metadata("images"))
    lines = {line["tag"]: line for line in log.dump("--payload", "full")}
    assert blobs(lines["audio"]) == [b"one", b"two"]
    assert (lines["other"]["kind"], lines["other"]["data"]) == ("tensor", ["one", "label", "two", "label"])


@pytest.mark.parametrize("plugin", ["graph_run_metadata", "graph_run_metadata_graph", "graph_keras_model"])
def test_graph_of_rank_0(log, plugin):
    log.value(tensor=tensor(7, string_val=[b"graph"]), metadata=metadata(plugin))
    (line,) = log.dump("--payload", "full")
    assert (line["plugin"], blobs(line)) == (plugin, [b"graph"])


def test_what_the_python_loader_does():
    """The column of docs/TENSORBOARD.md, by TensorBoard's own code."""
    def migrated(**members):
        event = event_pb2.Event(wall_time=1.0, step=1, **members)
        return dataclass_compat.migrate_event(data_compat.migrate_event(event), {})[-1].summary.value[0]

    def value(**members):
        return migrated(summary=summary_pb2.Summary(value=[summary_pb2.Summary.Value(tag="t", **members)]))

    histogram = value(histo=HISTOGRAM)
    assert make_ndarray(histogram.tensor).tolist() == [[-1.0, 0.0, 2.0], [0.0, 3.0, 3.0]] and histogram.tensor.dtype == types_pb2.DT_FLOAT
    audio, image = value(audio={"encoded_audio_string": b"RIFF"}), value(image={"width": 1, "height": 2, "encoded_image_string": b"p"})
    assert (audio.metadata.plugin_data.content, list(audio.tensor.string_val)) == (b"\x10\x0b\x18\x01", [b"RIFF"])
    assert (image.metadata.plugin_data.content, list(image.tensor.string_val)) == (b"\x10\x01", [b"1", b"2", b"p"])
    given = value(simple_value=1, metadata=metadata("mine", b"\x01", 1))
    assert (given.metadata.plugin_data.plugin_name, given.metadata.display_name) == ("scalars", "t")
    assert value(simple_value=1, metadata=metadata("images")).metadata.plugin_data.plugin_name == "scalars"
    assert migrated(tagged_run_metadata={"run_metadata": b"trace"}).tag == ""
    labels = value(tensor=tensor(7, [2, 2], string_val=[b"1", b"l", b"2", b"l"]), metadata=metadata("audio"))
    assert list(labels.tensor.string_val) == [b"1", b"2"]


# ---- Better on purpose -----------------------------------------------------------------------------------------------------------

NUMBERS = {  # by type: its field, numpy's name, a value
    "FLOAT": ("float_val", "float32", 1.5), "DOUBLE": ("double_val", "float64", 1.1), "INT32": ("int_val", "int32", -3),
    "UINT8": ("int_val", "uint8", 200), "INT16": ("int_val", "int16", -300), "INT8": ("int_val", "int8", -3),
    "INT64": ("int64_val", "int64", -(1 << 62) - 1), "BOOL": ("bool_val", "bool", True), "UINT16": ("int_val", "uint16", 65535),
    "UINT32": ("uint32_val", "uint32", (1 << 31) + 1), "UINT64": ("uint64_val", "uint64", (1 << 63) + 1),
    "HALF": ("half_val", "float16", 0.1),
}


@pytest.mark.parametrize("shape", [[], [1], [1, 1]], ids=str)
def test_every_number_is_a_scalar(log, shape):
    """As TensorBoard's own make_ndarray() reads the tensor, where it knows the type; its data server refuses all but floats."""
    arrays = {}
    for name, (field, dtype, value) in NUMBERS.items():
        array = arrays[name] = numpy.full(shape, value, dtype)
        bits = int(array.view(numpy.uint16).item()) if name == "HALF" else value
        typed = summary_pb2.Summary.Value(tensor=tensor(types_pb2.DataType.Value("DT_" + name), shape, **{field: [bits]})).tensor
        if name not in ("UINT32", "UINT64"):
            assert make_ndarray(typed) == array
        log.value(name, tensor=typed, metadata=metadata("scalars"))
        log.value(name, tensor=tensor(typed.dtype, shape, tensor_content=array.tobytes()), metadata=metadata("scalars"))
    lines = log.dump()
    assert len(lines) == 2 * len(NUMBERS)
    for line in lines:
        array = arrays[line["tag"]]
        assert (line["kind"], line["value"]) == ("scalar", float(array.item())), line
        assert line.get("bits") == (array.byteswap().tobytes().hex() if line["tag"] in ("INT64", "UINT64") else None)


def test_no_number_is_no_scalar(log):
    for tag, message in {"two": tensor(1, [2], float_val=[1, 2]), "none": tensor(1, [0]), "string": tensor(7, string_val=[b"1"]),
                         "complex": tensor(8, scomplex_val=[1, 2]), "misfit": tensor(1, float_val=[1, 2])}.items():
        log.value(tag, tensor=message, metadata=metadata("scalars"))
    assert {line["tag"]: (line["kind"], line["class"]) for line in log.dump()} == \
        dict.fromkeys(["two", "none", "string", "complex", "misfit"], ("tensor", "scalar"))


def test_texts_of_legacy_values(log):
    texts = {"display_name": "Loss of it", "summary_description": "What\nit is"}
    for tag, value in {"simple": {"simple_value": 1}, "histogram": {"histo": HISTOGRAM}, "image": {"image": {"width": 1}},
                       "audio": {"audio": {"encoded_audio_string": b""}}}.items():
        log.value(tag, metadata=metadata(**texts), **value)
    lines = log.dump()
    assert len(lines) == 4
    for line in lines:
        assert (line["display_name"], line["description"]) == ("Loss of it", "What\nit is")
        assert line["plugin"] in ("scalars", "histograms", "images", "audio")


def test_long_texts_of_a_series(log):
    long = "x" * 5000
    log.value(simple_value=1, metadata=metadata("mine", b"c" * 5000, 1, summary_description=long))
    (short,), (full,) = log.dump(), log.dump("--payload", "full")
    assert short["description"]["bytes"] == 5000 and len(short["description"]["sha256"]) == 64 and short["content"]["bytes"] == 5000
    assert full["description"] == long and bytes.fromhex(full["content"]) == b"c" * 5000


def test_class_of_a_later_value(log):
    strings = tensor(7, [1], string_val=[b"text"])
    log.value(tensor=strings)
    log.value(tensor=strings, metadata=metadata("mine"))
    log.value(tensor=strings, metadata=metadata("images"))
    log.value(tensor=strings, metadata=metadata("text"))
    assert [(line["class"], line["plugin"], line["kind"]) for line in log.dump()] == \
        [("unknown", "", "tensor"), ("unknown", "mine", "tensor"), ("blobs", "images", "blobs"), ("blobs", "images", "blobs")]
    assert len(log.dump("--plugin", "mine")) == 1 and len(log.dump("--plugin", "images")) == 2


def test_values_of_another_class_are_kept(log):
    log.value(simple_value=1)
    log.value(histo=HISTOGRAM)
    log.value(image={"width": 1, "height": 2, "encoded_image_string": b"p"})
    log.value()
    log.value(tensor=tensor(7, [1], string_val=[b"text"]), metadata=metadata("text"))
    lines = log.dump()
    assert [line["kind"] for line in lines] == ["scalar", "tensor", "blobs", "tensor", "tensor"]
    assert {(line["plugin"], line["class"]) for line in lines} == {("scalars", "scalar")}


def test_series_without_class(log):
    log.value("custom", tensor=tensor(1, [2], float_val=[1, 2]), metadata=metadata("mine", b"\x05", display_name="shown"))
    log.value("plain", tensor=tensor(1, [2], float_val=[1, 2]))
    custom, plain = log.dump("--payload", "full")
    assert (custom["plugin"], custom["content"], custom["display_name"], custom["class"], custom["data"]) == ("mine", "05", "shown", "unknown", [1.0, 2.0])
    assert (plain["plugin"], plain["class"], plain["data"]) == ("", "unknown", [1.0, 2.0])


def test_histogram_without_modern_form(log):
    log.value("old", obsolete_old_style_histogram=b"old")
    misfit = summary_pb2.HistogramProto(bucket_limit=[1.0, 2.0], bucket=[1.0])
    log.value("misfit", histo=misfit)
    lines = {line["tag"]: line for line in log.dump("--payload", "full")}
    assert (blobs(lines["old"]), lines["old"]["class"]) == ([b"old"], "unknown")
    assert (blobs(lines["misfit"]), lines["misfit"]["class"]) == ([misfit.SerializeToString()], "tensor")


def test_names_that_are_not_utf8(log):
    value = b"\x0a\x03t\xffu" + b"\x15" + struct.pack("<f", 1.0) + b"\x4a\x0a\x12\x03d\xffn\x1a\x03\xff\xfe."
    log.event(payload=b"\x2a" + bytes([len(value) + 2]) + b"\x0a" + bytes([len(value)]) + value)
    (line,) = log.dump()
    assert (line["tag"], line["tag_hex"]) == ("t\ufffdu", b"t\xffu".hex())
    assert (line["display_name"], line["display_name_hex"]) == ("d\ufffdn", b"d\xffn".hex())
    assert (line["description"], line["description_hex"]) == ("\ufffd\ufffd.", b"\xff\xfe.".hex())


def test_elements_of_a_malformed_tensor(log):
    log.value("strings", tensor=tensor(7, [3], string_val=[b"a", b"b"]), metadata=metadata("text"))
    log.value("blobs", tensor=tensor(7, [3], string_val=[b"a", b"b"]), metadata=metadata("images"))
    log.value("floats", tensor=tensor(1, [-1], float_val=[1, 2]), metadata=metadata("pr_curves"))
    lines = {line["tag"]: line for line in log.dump("--payload", "full")}
    for tag, shape, data in (("strings", [3], ["a", "b"]), ("floats", [-1], [1.0, 2.0])):
        assert (lines[tag]["malformed"], lines[tag]["shape"], lines[tag]["elements"], lines[tag]["data"]) == (True, shape, 2, data)
    assert blobs(lines["blobs"]) == [b"a", b"b"]


# ---- Over files and extents ------------------------------------------------------------------------------------------------------


def test_class_goes_on_over_the_files_of_a_run(log):
    """Strings are blobs because the first value of the series, in another file, says so; those of another run are not."""
    strings = tensor(7, [2], string_val=[b"1", b"2"])
    log.value(tensor=strings, metadata=metadata("images"), file="a.tfevents.1")
    log.value(tensor=strings, file="b.tfevents.2")
    log.value(tensor=strings, metadata=metadata("text"), file="c.tfevents.3")
    log.value(tensor=strings, run="other")
    assert [(line["run"], line["plugin"], line["class"], line["kind"]) for line in log.dump()] == \
        [(".", "images", "blobs", "blobs")] * 3 + [("other", "", "unknown", "tensor")]


def test_texts_too_long_for_an_extent(log):
    """They do not lie in the ring, and come all the same; a later value's do not take their place."""
    long, content = "x" * 400_000, bytes(range(256)) * 1500
    log.value(simple_value=1, metadata=metadata("mine", content, 1, display_name="n", summary_description=long))
    log.value(simple_value=2, metadata=metadata("mine", content + b"late", 1, summary_description=long + "late"))
    for transport in ("map", "inline"):
        lines = log.dump("--payload", "full", "--transport", transport)
        assert [(line["value"], line["class"], line["display_name"]) for line in lines] == [(1.0, "scalar", "n"), (2.0, "scalar", "n")]
        assert all(line["description"] == long and bytes.fromhex(line["content"]) == content for line in lines)


def test_plugin_too_long_for_an_extent(log):
    plugin = "p" * 200_000
    log.value(tensor=tensor(7, [1], string_val=[b"s"]), metadata=metadata(plugin, data_class=3))
    (line,) = log.dump("--payload", "full")
    assert (line["plugin"], line["class"], blobs(line)) == (plugin, "blobs", [b"s"])


def test_event_of_very_many_values(log):
    """Several extents, as each has 8192 series at most: every value, once, in order."""
    values = [summary_pb2.Summary.Value(tag=f"t{i}", simple_value=i) for i in range(100_000)]
    log.event(summary=summary_pb2.Summary(value=values))
    log.value("t0", simple_value=-1)
    lines = log.dump()
    assert [(line["tag"], line["value"], line["index"]) for line in lines] == [(f"t{i}", i, i) for i in range(100_000)] + [("t0", -1, 0)]
