# SPDX-License-Identifier: Apache-2.0
"""Event files written by TensorBoard's own writer, for the demo and the bench."""
import concurrent.futures
import itertools
import math
import os
import pathlib
import random

FILES, FILE_BYTES = 546, 42 * 1024
TAGS = ("train/loss", "train/accuracy", "validation/loss", "learning_rate")
START = 1_700_000_000.0


def _event(seed, step, *values):
    from tensorboard.compat.proto import event_pb2, summary_pb2
    return event_pb2.Event(wall_time=START + seed * 1000 + step * 0.25, step=step, summary=summary_pb2.Summary(value=values))


def _value(tag, **content):
    from tensorboard.compat.proto import summary_pb2
    return summary_pb2.Summary.Value(tag=tag, **content)


def _plugin(name):
    from tensorboard.compat.proto import summary_pb2
    return summary_pb2.SummaryMetadata(plugin_data=summary_pb2.SummaryMetadata.PluginData(plugin_name=name))


def _scalars(seed):
    """Without end: a few curves with noise, a step at a time."""
    from tensorboard.compat.proto import event_pb2, summary_pb2
    chance = random.Random(seed)
    step = 0
    while True:
        for number, tag in enumerate(TAGS):
            value = math.exp(-step / 300) * (1 + number) + chance.gauss(0, 0.01)
            yield event_pb2.Event(
                wall_time=START + seed * 1000 + step * 0.25 + number * 1e-3, step=step,
                summary=summary_pb2.Summary(value=[summary_pb2.Summary.Value(tag=tag, simple_value=value)]))
        step += 1


def _tensors(seed):
    """The same curves as TensorFlow 2 writes them: tensors of one number, each with its metadata."""
    from tensorboard.compat.proto import tensor_pb2, tensor_shape_pb2, types_pb2
    for event in _scalars(seed):
        value = event.summary.value[0]
        number = value.simple_value
        value.tensor.CopyFrom(tensor_pb2.TensorProto(dtype=types_pb2.DT_FLOAT, tensor_shape=tensor_shape_pb2.TensorShapeProto(),
                                                     float_val=[number]))
        value.metadata.CopyFrom(_plugin("scalars"))
        yield event


def _media(seed):
    """Histograms of 60 buckets and images of 8 KB."""
    from tensorboard.compat.proto import summary_pb2
    chance = random.Random(seed)
    limits = [-1e12] + [math.sinh(bucket / 4 - 7) for bucket in range(58)] + [1.79e308]
    for step in itertools.count():
        for number in range(3):
            counts = [float(chance.randrange(1000)) for _ in limits]
            yield _event(seed, step, _value(f"weights/layer{number}", histo=summary_pb2.HistogramProto(
                min=-3, max=3, num=sum(counts), sum=1, sum_squares=2, bucket_limit=limits, bucket=counts)))
        yield _event(seed, step, _value("samples/image/0", image=summary_pb2.Summary.Image(
            height=64, width=64, colorspace=3, encoded_image_string=chance.randbytes(8192))))


def _mixed(seed):
    """Of a step: four scalars, three histograms, an image, a text."""
    from tensorboard.compat.proto import tensor_pb2, tensor_shape_pb2, types_pb2
    scalars, media = _scalars(seed), _media(seed)
    one = tensor_shape_pb2.TensorShapeProto(dim=[tensor_shape_pb2.TensorShapeProto.Dim(size=1)])
    for step in itertools.count():
        yield from itertools.islice(scalars, len(TAGS))
        yield from itertools.islice(media, 4)
        yield _event(seed, step, _value("notes/text_summary", metadata=_plugin("text"), tensor=tensor_pb2.TensorProto(
            dtype=types_pb2.DT_STRING, tensor_shape=one, string_val=[b"step %d: " % step + b"words " * 30])))


def _big(seed):
    """Tensors of 200 KB."""
    from tensorboard.compat.proto import tensor_pb2, tensor_shape_pb2, types_pb2
    chance = random.Random(seed)
    shape = tensor_shape_pb2.TensorShapeProto(dim=[tensor_shape_pb2.TensorShapeProto.Dim(size=50_000)])
    for step in itertools.count():
        yield _event(seed, step, _value("activations", metadata=_plugin("vectors"), tensor=tensor_pb2.TensorProto(
            dtype=types_pb2.DT_FLOAT, tensor_shape=shape, tensor_content=chance.randbytes(200_000))))


KINDS = {"scalars": _scalars, "tensors": _tensors, "media": _media, "mixed": _mixed, "big": _big}


def _write_some(directory, numbers, file_bytes, kind):
    from tensorboard.summary.writer.event_file_writer import EventFileWriter

    for number in numbers:
        writer = EventFileWriter(directory, max_queue_size=10_000, flush_secs=3600, filename_suffix=f".{number:05}")
        written = 0
        for event in KINDS[kind](number):
            size = event.ByteSize() + 16  # a length, two CRCs
            if written + size > file_bytes - 40:  # the writer begins with a record of about 40 bytes
                break
            writer.add_event(event)
            written += size
        writer.close()


def write(directory, files=FILES, file_bytes=FILE_BYTES, kind="scalars"):
    """Returns the paths of the files that were made. kind: one of KINDS."""
    directory = pathlib.Path(directory)
    directory.mkdir(parents=True, exist_ok=True)
    before = set(directory.iterdir())
    processes = min(os.cpu_count() or 1, 8, files)
    with concurrent.futures.ProcessPoolExecutor(processes) as pool:
        jobs = [pool.submit(_write_some, str(directory), range(first, files, processes), file_bytes, kind)
                for first in range(processes)]
        for job in jobs:
            job.result()
    return sorted(set(directory.iterdir()) - before)


def write_copies(directory, originals, files):
    """Hard links under other names: many files for a server to list and send, without the time to write each."""
    directory = pathlib.Path(directory)
    directory.mkdir(parents=True, exist_ok=True)
    for number in range(files):
        os.link(originals[number % len(originals)], directory / f"events.out.tfevents.{int(START)}.host.{number:06}")
