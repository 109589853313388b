#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""An HTTP file server that fails on command, for tests.

    fault_server.py [--port N] [--until-stdin-closes] DIRECTORY

Serves DIRECTORY on 127.0.0.1: directories as nginx's JSON autoindex (GET /dir/), files with ranges and strong ETags.
It prints its port and a newline on stdout once it listens. With --until-stdin-closes it ends when stdin does, so it
cannot outlive a test that crashed. Python's standard library only.

It is a small S3, too: GET /BUCKET?list-type=2&... lists the files below DIRECTORY/BUCKET as ListObjectsV2 does (prefix, delimiter,
start-after, continuation-token, encoding-type), and GET /BUCKET/KEY reads them. Signatures are not checked.

GET /_stats answers JSON:

    {"connections": 3,          connections accepted
     "in_flight_peak": 2,       most requests that were being answered at once
     "requests": [{"method": "GET", "path": "/a%20b", "kind": "read", "requests": 2, "bytes": 84000,
                   "statuses": {"206": 2}, "headers": {"host": ...}, "query": "..."}, ...]}

path is percent-encoded as it was asked for; kind is "list" (a directory) or "read" (anything else); bytes are those of
bodies, as far as they were sent; headers and query are those of the last request. Requests to /_stats and /_control are not counted.

POST /_control takes one JSON object or an array of them; it is answered when they are in force:

    {"reset": true}                            forgets all faults and all counters
    {"clear": true}                            forgets all faults
    {"page_keys": 2}                           most keys and prefixes in a page of S3 (1000)
    {"path": GLOB, "fault": NAME, ...}         adds a fault

Members of every fault, all optional: "path": glob on the decoded path ("*" matches slashes too; default "*");
"kind": "list" or "read"; "unless": {HEADER: TEXT, ...} leaves requests alone that have all of these texts in their headers; "skip": leave the first n matching requests alone; "times": end after n requests (default: for
ever). The first fault in force that matches is applied to a request; "delay" is applied beside it. The faults:

    delay       "ms": before the answer; with "p90_ms" lognormal with median "ms"
    status      "status": 404, 403, 500, ...; "retry_after": text of that header; "code": XML error code in the body, with
                "elements": {NAME: TEXT, ...} beside it; "headers": {NAME: TEXT, ...}
    stall       the body stops after "after" bytes (default half of it), the connection stays open
    silent      no answer at all, the connection stays open
    reset       RST after "after" bytes of the body
    close       the connection is closed before any answer
    short       the connection is closed in order after "after" bytes; Content-Length was that of the whole body
    no_range    200 with the whole object, whatever was asked
    wrong_range Content-Range begins "by" bytes (default 1) too late; the body is the one that was asked for
    etag        another ETag at every answer
    no_etag     no ETag; weak: "weak": true sends a weak one
    grow        the object has "from" + k * "by" of its bytes at the k-th read of it (k = 0, 1, ...), at most all
    zeros       the last "bytes" of the object read as zeros
    flip        the byte at "at" of the object reads with its lowest bit flipped
    empty_206   206 with an empty body and no Content-Range
    garbage     200 with "body" (default: half a JSON array)
    auth        401 unless basic authentication says "user" and "password"
    redirect    302 to "location"
    trickle     the body in pieces of "piece" bytes (default 1000), "ms" (default 10) apart
"""
import argparse
import asyncio
import base64
import email.utils
import fnmatch
import json
import math
import os
import random
import re
import socket
import stat
import struct
import sys
import time
import urllib.parse
import xml.sax.saxutils as saxutils

REASONS = {200: "OK", 206: "Partial Content", 301: "Moved Permanently", 302: "Found", 400: "Bad Request",
           401: "Unauthorized", 403: "Forbidden", 404: "Not Found", 405: "Method Not Allowed",
           408: "Request Timeout", 416: "Requested Range Not Satisfiable", 429: "Too Many Requests",
           500: "Internal Server Error", 502: "Bad Gateway", 503: "Service Unavailable", 504: "Gateway Timeout"}


class Hangup(Exception):
    """This connection is over."""


def json_bytes(name):
    """A JSON string as nginx writes it: bytes that are no UTF-8 stay as they are."""
    out = bytearray(b'"')
    for byte in name:
        if byte in b'"\\':
            out += b"\\" + bytes([byte])
        elif byte == 10:
            out += b"\\n"
        elif byte < 32:
            out += b"\\u%04X" % byte
        else:
            out.append(byte)
    return bytes(out + b'"')


def listing(server, directory, path):
    rows = []
    for name in sorted(os.listdir(directory)):
        if name.startswith(b"."):
            continue
        try:
            info = os.stat(os.path.join(directory, name))
        except OSError:
            continue
        date = email.utils.formatdate(info.st_mtime, usegmt=True).encode()
        if stat.S_ISDIR(info.st_mode):
            rows.append(b'{ "name":%s, "type":"directory", "mtime":"%s" }' % (json_bytes(name), date))
        elif stat.S_ISREG(info.st_mode):
            size = server.size_now(path + os.fsdecode(name), info.st_size)
            rows.append(b'{ "name":%s, "type":"file", "mtime":"%s", "size":%d }' % (json_bytes(name), date, size))
        else:
            rows.append(b'{ "name":%s, "type":"other", "mtime":"%s" }' % (json_bytes(name), date))
    return b"[\n" + b",\n".join(rows) + b"\n]"


def keys_below(directory):
    """All files, as bytes relative to the directory, in the order of S3."""
    found = []
    for folder, _, names in os.walk(directory):
        found += [os.path.relpath(os.path.join(folder, name), directory) for name in names]
    return sorted(found)


def s3_rows(server, directory, path, query):
    """(key or prefix, row of XML) behind the place that the query names."""
    def text(name):
        return os.fsencode(query.get(name, [""])[0])
    prefix, delimiter = text("prefix"), text("delimiter")
    after = urllib.parse.unquote_to_bytes(text("continuation-token")) or text("start-after")
    seen = None
    for key in keys_below(directory):
        end = key.find(delimiter, len(prefix)) if delimiter else -1
        shared = key[:end + 1] if end >= 0 else None
        if not key.startswith(prefix) or (shared or key) <= after or (shared and shared == seen):
            continue
        seen = shared
        name = urllib.parse.quote_plus(shared or key, safe="/")
        if shared:
            yield shared, "<CommonPrefixes><Prefix>%s</Prefix></CommonPrefixes>" % name
            continue
        info = os.stat(os.path.join(directory, key))
        size = server.size_now(path + "/" + os.fsdecode(key), info.st_size)
        date = time.strftime("%Y-%m-%dT%H:%M:%S.000Z", time.gmtime(info.st_mtime))
        yield key, ("<Contents><Key>%s</Key><LastModified>%s</LastModified><ETag>&quot;%x-%x&quot;</ETag><Size>%d</Size>"
                    "<StorageClass>%s</StorageClass></Contents>" % (name, date, info.st_mtime_ns, size, size,
                                                                   "GLACIER" if b"glacier" in key else "STANDARD"))


def s3_page(server, directory, path, query):
    rows, last, is_truncated = [], b"", False
    for key, row in s3_rows(server, directory, path, query):
        if len(rows) == server.page_keys:
            is_truncated = True
            break
        rows.append(row)
        last = key
    token = "<NextContinuationToken>%s</NextContinuationToken>" % urllib.parse.quote(last, safe="") if is_truncated else ""
    return ('<?xml version="1.0" encoding="UTF-8"?>\n<ListBucketResult xmlns="http://s3.amazonaws.com/doc/2006-03-01/">%s'
            "<IsTruncated>%s</IsTruncated>%s<EncodingType>url</EncodingType></ListBucketResult>"
            % ("".join(rows), "true" if is_truncated else "false", token)).encode()


async def hang(writer):
    """Says nothing more until the client goes."""
    await writer.peer.read()
    raise Hangup


class Fault:
    def __init__(self, spec):
        self.spec = spec
        self.name = spec["fault"]
        self.skip = spec.get("skip", 0)
        self.times = spec.get("times", math.inf)
        self.reads = {}

    def matches(self, path, kind, headers):
        unless = self.spec.get("unless")
        if unless and all(text in headers.get(name, "") for name, text in unless.items()):
            return False
        if not fnmatch.fnmatchcase(path, self.spec.get("path", "*")) or self.spec.get("kind", kind) != kind:
            return False
        if self.skip > 0:
            self.skip -= 1
            return False
        if self.times <= 0:
            return False
        self.times -= 1
        return True

    def get(self, key, default=None):
        return self.spec.get(key, default)


class Server:
    def __init__(self, root):
        self.root = os.fsencode(root)
        self.faults = []
        self.reset_counters()
        self.in_flight = 0
        self.etag_serial = 0
        self.page_keys = 1000

    def reset_counters(self):
        self.counters = {}
        self.connections = 0
        self.in_flight_peak = 0

    def control(self, body):
        orders = json.loads(body)
        for order in orders if isinstance(orders, list) else [orders]:
            if order.get("reset"):
                self.faults = []
                self.reset_counters()
            elif order.get("clear"):
                self.faults = []
            elif "page_keys" in order:
                self.page_keys = order["page_keys"]
            else:
                self.faults.append(Fault(order))

    def stats(self):
        rows = [{"method": method, "path": path, "kind": kind, **counts}
                for (method, path, kind), counts in self.counters.items()]
        return json.dumps({"connections": self.connections, "in_flight_peak": self.in_flight_peak,
                           "requests": rows}).encode()

    def choose(self, path, kind, headers):
        delay = fault = None
        for candidate in self.faults:
            if candidate.name == "delay":
                if delay is None and candidate.matches(path, kind, headers):
                    delay = candidate
            elif fault is None and candidate.matches(path, kind, headers):
                fault = candidate
        return delay, fault

    def size_now(self, path, size, fault=None):
        """The size of a growing object, without counting a read."""
        if fault is None:
            fault = next((f for f in self.faults if f.name == "grow"
                          and fnmatch.fnmatchcase(path, f.get("path", "*"))), None)
        if fault is None:
            return size
        return min(size, fault.get("from", 0) + fault.reads.get(path, 0) * fault.get("by", 1))

    async def connection(self, reader, writer):
        self.connections += 1
        writer.peer = reader
        try:
            while await self.request(reader, writer):
                pass
        except (Hangup, ConnectionError, asyncio.IncompleteReadError, asyncio.LimitOverrunError,
                asyncio.CancelledError):
            pass
        finally:
            writer.close()

    async def request(self, reader, writer):
        try:
            head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1")
        except asyncio.IncompleteReadError:
            return False
        first, *lines = head.split("\r\n")
        method, target, _ = first.split(" ", 2)
        headers = {}
        for line in lines:
            key, _, value = line.partition(":")
            headers[key.lower()] = value.strip()
        body = await reader.readexactly(int(headers.get("content-length", "0")))
        raw_path, _, query = target.partition("?")
        if raw_path == "/_stats":
            await self.answer(writer, None, 200, self.stats(), {"Content-Type": "application/json"})
        elif raw_path == "/_control":
            try:
                self.control(body)
                await self.answer(writer, None, 200, b"{}\n", {})
            except (ValueError, KeyError, AttributeError) as error:
                await self.answer(writer, None, 400, repr(error).encode(), {})
        else:
            self.in_flight += 1
            self.in_flight_peak = max(self.in_flight_peak, self.in_flight)
            try:
                await self.storage(writer, method, raw_path, query, headers)
            finally:
                self.in_flight -= 1
        return True

    async def storage(self, writer, method, raw_path, query, headers):
        path_bytes = urllib.parse.unquote_to_bytes(raw_path)
        path = os.fsdecode(path_bytes)
        is_page = "list-type=2" in query.split("&")
        kind = "list" if path.endswith("/") or is_page else "read"
        count = self.counters.setdefault((method, raw_path, kind), {"requests": 0, "bytes": 0, "statuses": {}})
        count["requests"] += 1
        count["headers"], count["query"] = headers, query
        delay, fault = self.choose(path, kind, headers)
        if delay:
            seconds = delay.get("ms", 100) / 1000
            if delay.get("p90_ms"):
                sigma = math.log(delay.get("p90_ms") / delay.get("ms", 100)) / 1.2815515655446004
                seconds = random.lognormvariate(math.log(seconds), sigma)
            await asyncio.sleep(seconds)
        name = fault.name if fault else ""
        if name == "silent":
            await hang(writer)
        if name == "close":
            raise Hangup
        if name == "status":
            extra = {"Retry-After": fault.get("retry_after")} if fault.get("retry_after") else {}
            extra.update(fault.get("headers", {}))
            text = "failed on command\n"
            if fault.get("code"):
                elements = {"Code": fault.get("code"), **fault.get("elements", {})}
                text = "<Error>%s</Error>" % "".join("<%s>%s</%s>" % (name, saxutils.escape(value), name) for name, value in elements.items())
            return await self.answer(writer, count, fault.get("status", 500), text.encode(), extra)
        if name == "garbage":
            text = fault.get("body", '[\n{ "name":"a.tfevents", "ty').encode("utf-8", "surrogateescape")
            return await self.answer(writer, count, 200, text, {"Content-Type": "application/json"})
        if name == "redirect":
            return await self.answer(writer, count, 302, b"", {"Location": fault.get("location", "/")})
        if name == "auth":
            wanted = base64.b64encode(("%s:%s" % (fault.get("user"), fault.get("password"))).encode()).decode()
            if headers.get("authorization") != "Basic " + wanted:
                return await self.answer(writer, count, 401, b"", {"WWW-Authenticate": 'Basic realm="test"'})
            fault, name = None, ""
        if method not in ("GET", "HEAD"):
            return await self.answer(writer, count, 405, b"", {})
        if b"/../" in path_bytes or not path_bytes.startswith(b"/"):
            return await self.answer(writer, count, 400, b"", {})
        full = self.root + path_bytes
        try:
            if is_page:
                body = s3_page(self, full, path, urllib.parse.parse_qs(query, keep_blank_values=True))
                return await self.answer(writer, count, 200, body, {"Content-Type": "application/xml"}, fault)
            if kind == "list":
                body = listing(self, full, path)
                return await self.answer(writer, count, 200, body, {"Content-Type": "application/json"}, fault)
            info = os.stat(full)
            if stat.S_ISDIR(info.st_mode):
                return await self.answer(writer, count, 301, b"", {"Location": raw_path + "/"})
            if not stat.S_ISREG(info.st_mode):
                return await self.answer(writer, count, 404, b"", {})
            return await self.file(writer, count, full, path, info, headers, fault)
        except PermissionError:
            return await self.answer(writer, count, 403, b"", {})
        except OSError:
            return await self.answer(writer, count, 404, b"", {})

    async def file(self, writer, count, full, path, info, headers, fault):
        name = fault.name if fault else ""
        size = info.st_size
        tag = '"%x-%x"' % (info.st_mtime_ns, size)
        if name == "grow":
            size = self.size_now(path, size, fault)
            fault.reads[path] = fault.reads.get(path, 0) + 1
        if name == "etag":
            self.etag_serial += 1
            tag = '"serial-%d"' % self.etag_serial
        answer = {"ETag": tag, "Accept-Ranges": "bytes",
                  "Last-Modified": email.utils.formatdate(info.st_mtime, usegmt=True)}
        if name == "no_etag":
            del answer["ETag"]
            if fault.get("weak"):
                answer["ETag"] = "W/" + tag
        wanted = re.fullmatch(r"bytes=(\d+)-(\d*)", headers.get("range", ""))
        begin, end = 0, size
        if wanted:
            begin = int(wanted.group(1))
            end = min(size, int(wanted.group(2)) + 1) if wanted.group(2) else size
            if name == "empty_206":
                return await self.answer(writer, count, 206, b"", answer)
            if begin >= size and name != "no_range":
                answer["Content-Range"] = "bytes */%d" % size
                return await self.answer(writer, count, 416, b"", answer)
        if not wanted or name == "no_range":
            begin, end, status = 0, size, 200
            answer.pop("Accept-Ranges")
        else:
            status = 206
            shift = fault.get("by", 1) if name == "wrong_range" else 0
            answer["Content-Range"] = "bytes %d-%d/%d" % (begin + shift, end - 1 + shift, size)
        with open(full, "rb") as stream:
            stream.seek(begin)
            body = stream.read(end - begin)
        if name == "zeros":
            zeros = max(begin, size - fault.get("bytes", 0))
            if zeros < end:
                body = body[:zeros - begin] + bytes(end - zeros)
        if name == "flip" and begin <= fault.get("at", 0) < end:
            at = fault.get("at", 0) - begin
            body = body[:at] + bytes([body[at] ^ 1]) + body[at + 1:]
        return await self.answer(writer, count, status, body, answer, fault)

    async def answer(self, writer, count, status, body, headers, fault=None):
        lines = ["HTTP/1.1 %d %s" % (status, REASONS.get(status, "Unknown")), "Content-Length: %d" % len(body)]
        lines += ["%s: %s" % item for item in headers.items()]
        head = ("\r\n".join(lines) + "\r\n\r\n").encode("latin-1")
        name = fault.name if fault else ""
        if name in ("stall", "reset", "short"):
            body = body[:fault.get("after", len(body) // 2)]
        if count is not None:
            key = str(status)
            count["statuses"][key] = count["statuses"].get(key, 0) + 1
            count["bytes"] += len(body)
        if name == "trickle":
            writer.write(head)
            piece = fault.get("piece", 1000)
            for at in range(0, len(body), piece):
                writer.write(body[at:at + piece])
                await writer.drain()
                await asyncio.sleep(fault.get("ms", 10) / 1000)
            return
        writer.write(head + body)
        await writer.drain()
        if name == "stall":
            await hang(writer)
        if name == "short":
            raise Hangup
        if name == "reset":
            await asyncio.sleep(0.02)  # let the bytes before it arrive: an RST discards what is not yet read
            writer.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            writer.transport.abort()
            raise Hangup


async def serve(options):
    server = Server(options.directory)
    listener = await asyncio.start_server(server.connection, "127.0.0.1", options.port, backlog=4096)
    print(listener.sockets[0].getsockname()[1], flush=True)
    if options.until_stdin_closes:
        ended = asyncio.Event()
        loop = asyncio.get_running_loop()
        loop.add_reader(0, lambda: None if os.read(0, 4096) else (loop.remove_reader(0), ended.set()))
        await ended.wait()
        loop.set_exception_handler(lambda *_: None)  # connections that are cut off now are nobody's mistake
    else:
        await listener.serve_forever()


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--port", type=int, default=0)
    parser.add_argument("--until-stdin-closes", action="store_true")
    parser.add_argument("directory")
    try:
        asyncio.run(serve(parser.parse_args()))
    except KeyboardInterrupt:
        sys.exit(130)


if __name__ == "__main__":
    main()
