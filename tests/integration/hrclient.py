# SPDX-License-Identifier: Apache-2.0
"""A client of headraced that shares no code with it: docs/PROTOCOL.md, docs/RING.md and docs/EXTENT.md, read again."""
import array
import json
import mmap
import os
import select
import socket
import struct
import threading

import numpy

JSON, EXTENT, WAKE = 1, 2, 3
MORE = 1
PATIENCE_S = 60

REPLAY, LATE, LOST, REPLACED, GONE, END, DAMAGED = 1, 2, 4, 8, 16, 32, 64
SCALAR, TENSOR, BLOBS, MARK = 1, 2, 3, 4
EXTERNAL = 1

RECORD = numpy.dtype([("step", "<i8"), ("wall_time", "<f8"), ("value", "<f8"), ("series", "<u4"), ("kind", "u1"), ("dtype", "u1"),
                      ("flags", "<u2"), ("payload_offset", "<u8"), ("payload_size", "<u8"), ("source_offset", "<u8"),
                      ("source_size", "<u4"), ("value_index", "<u4")])
ENTRY = struct.Struct("<6I5Q")
HEADER = struct.Struct("<BBHI")


_LOCK = threading.Lock()


def fence():
    """Between our store and our load: without it each side may miss what the other has just written (docs/RING.md, "Waking")."""
    with _LOCK:  # an atomic operation, which is a full fence
        pass


class RpcError(Exception):
    def __init__(self, error):
        super().__init__(error["message"])
        self.code = error["code"]
        self.data = error.get("data")


class Closed(Exception):
    """The daemon closed the connection."""


class Entry:
    def __init__(self, image):
        (self.segment, self.offset, self.size, self.first_record, self.record_count, self.flags, self.generation, self.file_id,
         self.run_id, self.source_offset, self.lost_count) = ENTRY.unpack(image)


class Extent:
    """An image, checked: its CRC and the bounds that are used here."""

    def __init__(self, image):
        import crc32c

        self.image = bytes(image)
        (self.magic, self.version, self.flags, self.size, crc, self.record_count, self.series_count, self.skipped, self.source_id,
         self.run_id, self.file_id, self.file_version, self.begin_offset, self.end_offset, self.min_wall_time, self.records_offset,
         self.series_offset, run_at, run_size, file_at, file_size, self.payload_offset, self.begin_index,
         self.end_index) = struct.unpack_from("<IHHQIIIIQQQQQQdIIIIIIQII", self.image)
        assert self.magic == int.from_bytes(b"HRX1", "little") and self.version == 1
        assert self.size == len(self.image) and self.size % 64 == 0
        assert crc == crc32c.crc32c(self.image[:16] + bytes(4) + self.image[20:])
        self.run = self.image[run_at:run_at + run_size]
        self.file = self.image[file_at:file_at + file_size]
        self.records = numpy.frombuffer(self.image, RECORD, self.record_count, self.records_offset)
        self.tags = [self._tag(index) for index in range(self.series_count)]

    def _tag(self, index):
        _, at, size = struct.unpack_from("<QII", self.image, self.series_offset + 64 * index)
        return self.image[at:at + size]


class Client:
    def __init__(self, path_or_socket, hello=True):
        if isinstance(path_or_socket, socket.socket):
            self.socket = path_or_socket
        else:
            self.socket = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
            self.socket.connect(str(path_or_socket))
        self.socket.settimeout(PATIENCE_S)
        self.bytes = b""
        self.fds = []
        self.next_id = 0
        self.notifications = []
        self.extents = []  # bodies of extent frames that came while an answer was waited for
        self.woken = 0
        self.hello = self.call("hello", client="test", protocol=[1]) if hello else None

    def close(self):
        for fd in self.fds:
            os.close(fd)
        self.fds = []
        self.socket.close()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def send_raw(self, data):
        self.socket.sendall(data)

    def send_frame(self, kind, body=b"", fds=0, flags=0):
        self.send_raw(HEADER.pack(kind, fds, flags, len(body)) + body)

    def _fill(self, size):
        while len(self.bytes) < size:
            data, ancillary, flags, _ = self.socket.recvmsg(1 << 20, socket.CMSG_SPACE(16))
            assert not flags & socket.MSG_CTRUNC
            for level, kind, content in ancillary:
                assert (level, kind) == (socket.SOL_SOCKET, socket.SCM_RIGHTS)
                fds = array.array("i")
                fds.frombytes(content[:len(content) - len(content) % 4])
                self.fds.extend(fds)
            if not data:
                raise Closed
            self.bytes += data

    def frame(self):
        """(type, flags, fds, body) of the next frame."""
        self._fill(HEADER.size)
        kind, fd_count, flags, size = HEADER.unpack_from(self.bytes)
        assert kind in (JSON, EXTENT, WAKE) and fd_count <= 4 and size <= 16 << 20
        self._fill(HEADER.size + size)
        body, self.bytes = self.bytes[HEADER.size:HEADER.size + size], self.bytes[HEADER.size + size:]
        fds, self.fds = self.fds[:fd_count], self.fds[fd_count:]
        assert len(fds) == fd_count
        return kind, flags, fds, body

    def extent(self):
        """(entry, image) of the next extent, of as many frames as it has; b"" for an entry alone."""
        body, flags = b"", MORE
        while flags & MORE:
            kind, flags, _, piece = self.extents.pop(0) if self.extents else self.frame()
            if kind == JSON:
                self._note(json.loads(piece))
                flags = MORE
            elif kind == EXTENT:
                body += piece
        return Entry(body[:64]), body[64:]

    def _note(self, message):
        """Keeps a notification, or an answer that nobody waits for; an error without an id is the connection's."""
        if message.get("id", 0) is None:
            raise RpcError(message["error"])
        self.notifications.append(message)

    def send_call(self, method, **params):
        self.next_id += 1
        self.send_frame(JSON, json.dumps({"jsonrpc": "2.0", "id": self.next_id, "method": method, "params": params}).encode())
        return self.next_id

    def answer(self, request_id):
        """(result, fds) of a call; what comes before it is kept. An error without an id ends the connection."""
        while True:
            kind, flags, fds, body = self.frame()
            if kind == WAKE:
                self.woken += 1
            elif kind == EXTENT:
                self.extents.append((kind, flags, fds, body))
            else:
                message = json.loads(body)
                if message.get("id") == request_id and "method" not in message:
                    if "error" in message:
                        raise RpcError(message["error"])
                    return message["result"], fds
                self._note(message)

    def call(self, method, **params):
        result, fds = self.answer(self.send_call(method, **params))
        for fd in fds:
            os.close(fd)
        return result

    def notify(self, method, **params):
        self.send_frame(JSON, json.dumps({"jsonrpc": "2.0", "method": method, "params": params}).encode())

    def pages(self, method, **params):
        """All rows of a list, and how many pages they came in."""
        rows, count, after = [], 0, {}
        while True:
            page = self.call(method, **params, **after)
            rows += page[method]
            count += 1
            if "next" not in page:
                return rows, count
            after = {"after": page["next"]}

    def subscribe(self, **params):
        transport = params.setdefault("transport", "map")
        result, fds = self.answer(self.send_call("subscribe", **params))
        assert result["transport"] == transport
        return MapStream(self, result, fds) if transport == "map" else InlineStream(self, result)


class InlineStream:
    def __init__(self, client, result):
        self.client, self.result = client, result
        self.taken = 0

    def entries(self, acknowledge=True):
        """(entry, image) up to the end of the stream."""
        while True:
            entry, image = self.client.extent()
            assert len(image) == entry.size
            self.taken += 1
            if acknowledge:
                self.client.notify("ack", position=self.taken)
            yield entry, image
            if entry.flags & END:
                return


class MapStream:
    def __init__(self, client, result, fds):
        self.client, self.result, self.fds = client, result, fds
        self.data_fd, self.queue_fd, self.ack_fd = fds
        sizes = [os.fstat(fd).st_size for fd in fds]
        self.data = mmap.mmap(self.data_fd, sizes[0], prot=mmap.PROT_READ)
        self.queue = mmap.mmap(self.queue_fd, sizes[1], prot=mmap.PROT_READ)
        self.ack = mmap.mmap(self.ack_fd, sizes[2])
        self.acked = memoryview(self.ack).cast("Q")
        assert self.data[:8] == b"!HRRING1"
        major, _, _, incompatible = struct.unpack_from("<HHII", self.data, 8)
        assert major == 1 and incompatible == 0
        self.table, self.segments, self.segment_bytes = struct.unpack_from("<QQQ", self.data, 40)
        self.entry_count, self.entries_at = struct.unpack_from("<IQ", self.queue, 12)
        self.taken = 0

    def close(self):
        self.acked.release()
        for memory in (self.data, self.queue, self.ack):
            memory.close()
        for fd in self.fds:
            os.close(fd)

    def tail(self):
        return struct.unpack_from("@Q", self.queue, 64)[0]

    def status(self):
        return struct.unpack_from("@I", self.queue, 136)[0]

    def generation(self, segment):
        return struct.unpack_from("@Q", self.data, self.table + 8 * segment)[0]

    def wait(self):
        """Sleeps until there is more than was taken. True, or False if the stream has been closed."""
        while self.tail() == self.taken:
            struct.pack_into("@I", self.ack, 64, 1)
            fence()
            if self.tail() == self.taken:
                if self.status():
                    return False
                if not select.select([self.client.socket], [], [], PATIENCE_S)[0]:
                    raise TimeoutError("the daemon does not wake its client")
                kind, _, _, body = self.client.frame()
                if kind == JSON:
                    self.client._note(json.loads(body))
            struct.pack_into("@I", self.ack, 64, 0)
        return True

    def take(self):
        """(entry, image) of the next entry, which is not acknowledged yet. The image is copied out."""
        entry = Entry(self.queue[self.entries_at + 64 * (self.taken % self.entry_count):][:64])
        self.taken += 1
        if not entry.size:
            return entry, b""
        assert self.generation(entry.segment) == entry.generation
        begin = self.segments + entry.segment * self.segment_bytes + entry.offset
        image = self.data[begin:begin + entry.size]
        assert self.generation(entry.segment) == entry.generation
        return entry, image

    def acknowledge(self, position):
        old = struct.unpack_from("@Q", self.ack, 0)[0]
        self.acked[0] = position  # one store: pack_into() writes zeros first, and a counter that goes back is a lie
        fence()
        kick_at = struct.unpack_from("@Q", self.queue, 128)[0]
        if old < kick_at <= position:
            self.client.send_frame(WAKE)

    def entries(self, acknowledge=True):
        while self.wait():
            entry, image = self.take()
            if acknowledge:
                self.acknowledge(self.taken)
            yield entry, image
            if entry.flags & END:
                return


def scalar_rows(entries):
    """{file: [(offset, index, step, wall_time, tag, value)]} of the scalars of a stream, and the last entry."""
    files, last = {}, None
    for last, image in entries:
        if not image:
            continue
        extent = Extent(image)
        rows = files.setdefault(extent.file.decode(), [])
        for record in extent.records[last.first_record:last.first_record + last.record_count]:
            if record["kind"] == SCALAR:
                rows.append((int(record["source_offset"]), int(record["value_index"]), int(record["step"]),
                             float(record["wall_time"]), extent.tags[record["series"]].decode(), float(record["value"])))
    return files, last
