# SPDX-License-Identifier: Apache-2.0
"""What TensorBoard's own reader finds in an event file, in the words of `headrace dump`."""
import concurrent.futures
import os
import pathlib

MARK_BYTES = 16  # of a TFRecord beside its payload: the length, its CRC, the payload's CRC


def scalars(path, name):
    """(file, offset, index, step, wall_time, tag, value) of every simple_value, in file order."""
    from tensorboard.backend.event_processing.event_file_loader import RawEventFileLoader
    from tensorboard.compat.proto import event_pb2

    rows, offset = [], 0
    for payload in RawEventFileLoader(str(path)).Load():
        event = event_pb2.Event.FromString(payload)
        for index, value in enumerate(event.summary.value):
            if value.WhichOneof("value") == "simple_value":
                rows.append((name, offset, index, event.step, event.wall_time, value.tag, value.simple_value))
        offset += len(payload) + MARK_BYTES
    return rows


def _scalars_of_some(paths):
    return [scalars(path, pathlib.Path(path).name) for path in paths]


def scalars_of_all(paths):
    """The rows of all files, sorted by file name as `headrace dump` sorts them."""
    paths = sorted(str(path) for path in paths)
    pieces = [paths[first:first + 32] for first in range(0, len(paths), 32)]
    with concurrent.futures.ProcessPoolExecutor(min(os.cpu_count() or 1, 8)) as pool:
        for piece in pool.map(_scalars_of_some, pieces):
            for rows in piece:
                yield from rows
