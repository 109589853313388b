# SPDX-License-Identifier: Apache-2.0
"""Event files of scalars, written by TensorBoard's own writer, for the demo and the bench."""
import concurrent.futures
import math
import os
import pathlib
import random

FILES, FILE_BYTES = 546, 42 * 1024
TAGS = ("train/loss", "train/accuracy", "validation/loss", "learning_rate")
START = 1_700_000_000.0


def _events(seed, event_pb2, summary_pb2):
    """Without end: a few curves with noise, a step at a time."""
    chance = random.Random(seed)
    step = 0
    while True:
        for number, tag in enumerate(TAGS):
            value = math.exp(-step / 300) * (1 + number) + chance.gauss(0, 0.01)
            yield event_pb2.Event(
                wall_time=START + seed * 1000 + step * 0.25 + number * 1e-3, step=step,
                summary=summary_pb2.Summary(value=[summary_pb2.Summary.Value(tag=tag, simple_value=value)]))
        step += 1


def _write_some(directory, numbers, file_bytes):
    from tensorboard.compat.proto import event_pb2, summary_pb2
    from tensorboard.summary.writer.event_file_writer import EventFileWriter

    for number in numbers:
        writer = EventFileWriter(directory, max_queue_size=10_000, flush_secs=3600, filename_suffix=f".{number:05}")
        written = 0
        for event in _events(number, event_pb2, summary_pb2):
            size = event.ByteSize() + 16  # a length, two CRCs
            if written + size > file_bytes - 40:  # the writer begins with a record of about 40 bytes
                break
            writer.add_event(event)
            written += size
        writer.close()


def write(directory, files=FILES, file_bytes=FILE_BYTES):
    """Returns the paths of the files that were made."""
    directory = pathlib.Path(directory)
    directory.mkdir(parents=True, exist_ok=True)
    before = set(directory.iterdir())
    processes = min(os.cpu_count() or 1, 8, files)
    with concurrent.futures.ProcessPoolExecutor(processes) as pool:
        jobs = [pool.submit(_write_some, str(directory), range(first, files, processes), file_bytes) for first in range(processes)]
        for job in jobs:
            job.result()
    return sorted(set(directory.iterdir()) - before)


def write_copies(directory, originals, files):
    """Hard links under other names: many files for a server to list and send, without the time to write each."""
    directory = pathlib.Path(directory)
    directory.mkdir(parents=True, exist_ok=True)
    for number in range(files):
        os.link(originals[number % len(originals)], directory / f"events.out.tfevents.{int(START)}.host.{number:06}")
