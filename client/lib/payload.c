/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Payloads in place. An external one comes as an extent of its own with one record, by either
 * transport; it is kept until the next payload or the next batch.
 */
#include "client/lib/payload.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include "client/lib/call.h"
#include "client/lib/link.h"
#include "client/lib/stream.h"
#include "client/lib/subscribe.h"

_Static_assert(sizeof(struct hr_record) == sizeof(struct extent_record),
               "records are read in place");
_Static_assert(offsetof(struct hr_record, payload_offset) ==
                       offsetof(struct extent_record, payload_offset),
               "layout");
_Static_assert(offsetof(struct hr_record, value_index) ==
                       offsetof(struct extent_record, value_index),
               "layout");
_Static_assert((int)HR_RECORD_EXTERNAL == (int)EXTENT_RECORD_EXTERNAL, "layout");
_Static_assert((int)HR_RECORD_NUMBER == (int)EXTENT_RECORD_NUMBER, "layout");
_Static_assert((int)HR_KIND_MARK == (int)EXTENT_KIND_MARK, "layout");
_Static_assert((int)HR_CLASS_BLOBS == (int)EXTENT_CLASS_BLOBS, "layout");
_Static_assert(HR_SERIES_NONE == EXTENT_SERIES_NONE, "layout");

static int payload_fail(struct hr_connection *connection, const char *problem) {
        return link_fail(connection, -EPROTO, "%s: payload: %s", hr_daemon_name(connection),
                         problem);
}

static int map_answer(struct hr_connection *connection, struct stream *stream) {
        int fd = connection->call.fds[0], seals = fcntl(fd, F_GET_SEALS);
        struct stat info;
        void *memory;

        if (seals < 0 || !(seals & F_SEAL_SHRINK) || fstat(fd, &info) < 0 || info.st_size <= 0)
                return payload_fail(connection, "the memory is not sealed");
        memory = mmap(NULL, (size_t)info.st_size, PROT_READ, MAP_SHARED, fd, 0);
        if (memory == MAP_FAILED)
                return link_fail(connection, -errno, "payload: mmap: %s", strerror(errno));
        stream->payload_memory = memory;
        stream->payload_bytes = (uint64_t)info.st_size;
        return 0;
}

/* The extent follows its answer as frames. */
static int wait_for_frames(struct hr_connection *connection, struct stream *stream) {
        int r = 0;

        while (!(stream->payload = inbox_steal_payload(&connection->inbox)) && r >= 0) {
                r = link_pump(connection);
                if (r == HR_AGAIN)
                        r = link_wait(connection, -1);
        }
        return stream->payload ? 0 : r;
}

static json_t *request_json(const struct hr_position *position) {
        return json_pack("{s:o, s:o, s:I, s:I}", "file", subscribe_hex(position->file_id),
                         "file_version", subscribe_hex(position->file_version), "offset",
                         (json_int_t)position->offset, "index", (json_int_t)position->index);
}

struct hr_position payload_position(const struct extent_view *view,
                                    const struct extent_record *record) {
        return (struct hr_position){ .file_id = view->header->file_id,
                                     .file_version = view->header->file_version,
                                     .offset = record->source_offset,
                                     .index = record->value_index };
}

int payload_fetch(struct hr_connection *connection, const struct hr_position *position,
                  struct extent_view *ret_view) {
        struct stream *stream = connection->stream;
        const void *extent;
        uint64_t size;
        int r;

        stream_drop_payload(stream);
        r = call_start(connection, "payload", request_json(position));
        if (r < 0)
                return r;
        r = call_finish(connection, -1);
        if (r == 0)
                r = connection->call.fd_count ? map_answer(connection, stream)
                                              : wait_for_frames(connection, stream);
        call_reset(&connection->call);
        if (r)
                return r;
        extent = stream->payload ? stream->payload->extent : stream->payload_memory;
        size = stream->payload ? stream->payload->entry.size_bytes : stream->payload_bytes;
        if (!extent || extent_view_init(ret_view, extent, size) < 0 || ret_view->record_count != 1)
                return payload_fail(connection, "the answer is no extent of one record");
        if (extent_view_record(ret_view, 0)->source_offset != position->offset ||
            extent_view_record(ret_view, 0)->value_index != position->index)
                return payload_fail(connection, "the answer is another record");
        return 0;
}

void payload_show(const struct extent_payload_view *view, struct hr_payload *ret_payload) {
        *ret_payload = (struct hr_payload){
                .dtype = view->dtype,
                .rank = view->rank,
                .rank_known = view->rank_known,
                .malformed = view->malformed,
                .repeated = view->repeated,
                .element_count = view->element_count,
                .element_bytes = view->element_bytes,
                .shape = view->dimension,
                .elements = view->elements,
                .elements_size = view->elements_size,
                .end_offset_ = view->end_offset,
        };
}

int payload_find(struct hr_connection *connection, const struct hr_batch *batch,
                 const struct hr_record *record, struct extent_payload_view *ret_payload) {
        struct stream *stream = connection->stream;
        struct extent_view view;
        const struct extent_record *source = (const struct extent_record *)record;
        int r;

        if (!stream || !stream->view.bytes || batch->extent_ != stream->view.bytes)
                return link_fail(connection, -EINVAL, "the record is not of the current batch");
        view = stream->view;
        stream_drop_payload(stream);
        if (record->flags & HR_RECORD_EXTERNAL) {
                struct hr_position position = payload_position(&view, source);

                if ((r = payload_fetch(connection, &position, &view)))
                        return r;
                source = extent_view_record(&view, 0);
        }
        r = extent_view_payload(&view, source, ret_payload);
        if (r == -ENOENT)
                return link_fail(connection, r, "the record has no payload");
        return r < 0 ? payload_fail(connection, "it does not lie in its extent") : 0;
}

int hr_payload(struct hr_connection *connection, const struct hr_batch *batch,
               const struct hr_record *record, struct hr_payload *ret_payload) {
        struct extent_payload_view payload;
        int r = payload_find(connection, batch, record, &payload);

        if (r == 0)
                payload_show(&payload, ret_payload);
        return r;
}

struct hr_text hr_payload_string(const struct hr_payload *payload, uint32_t index) {
        const struct extent_payload_view view = {
                .element_count = payload->element_count,
                .elements = payload->elements,
                .elements_size = payload->elements_size,
                .end_offset = payload->end_offset_,
        };
        struct extent_string string = { NULL, 0 };

        if (payload->end_offset_ && index < payload->element_count)
                string = extent_payload_string(&view, index);
        return (struct hr_text){ (const char *)string.bytes, string.size };
}
