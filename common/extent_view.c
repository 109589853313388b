/* SPDX-License-Identifier: Apache-2.0 */
/* Every offset is compared in 64 bits against what is left, so that no sum can wrap. */
#include "common/extent_view.h"

#include <errno.h>
#include <string.h>

#include "common/base.h"
#include "common/crc32c.h"
#include "common/tensor_type.h"

static bool lies_inside(const struct extent_view *view, uint64_t offset, uint64_t size) {
        return offset <= view->size_bytes && size <= view->size_bytes - offset;
}

static bool table_lies_inside(const struct extent_view *view, uint32_t offset, uint32_t count) {
        return offset % EXTENT_ALIGNMENT == 0 && offset >= sizeof(struct extent_header) &&
               lies_inside(view, offset, (uint64_t)count * 64);
}

static struct extent_string string_at(const struct extent_view *view, uint32_t offset,
                                      uint32_t size) {
        if (!lies_inside(view, offset, size))
                return (struct extent_string){ view->bytes, 0 };
        return (struct extent_string){ view->bytes + offset, size };
}

static bool series_lies_inside(const struct extent_view *view, const struct extent_series *series) {
        return lies_inside(view, series->tag_offset, series->tag_size) &&
               lies_inside(view, series->plugin_offset, series->plugin_size) &&
               lies_inside(view, series->display_name_offset, series->display_name_size) &&
               lies_inside(view, series->description_offset, series->description_size) &&
               lies_inside(view, series->content_offset, series->content_size);
}

static bool header_is_right(const struct extent_header *header, uint64_t size_bytes) {
        return header->magic == EXTENT_MAGIC && header->version == EXTENT_VERSION &&
               header->size_bytes <= size_bytes && header->size_bytes >= sizeof(*header) &&
               header->size_bytes % EXTENT_ALIGNMENT == 0;
}

int extent_view_init(struct extent_view *view, const void *bytes, uint64_t size_bytes) {
        const struct extent_header *header = bytes;
        struct extent_view found = { .bytes = bytes, .header = header };

        if (size_bytes < sizeof(*header) || (uintptr_t)bytes % EXTENT_ALIGNMENT ||
            !header_is_right(header, size_bytes))
                return -EBADMSG;
        found.size_bytes = header->size_bytes;
        found.record_count = header->record_count;
        found.series_count = header->series_count;
        if (found.size_bytes > size_bytes ||
            !table_lies_inside(&found, header->records_offset, found.record_count) ||
            !table_lies_inside(&found, header->series_offset, found.series_count) ||
            !lies_inside(&found, header->run_name_offset, header->run_name_size) ||
            !lies_inside(&found, header->file_path_offset, header->file_path_size))
                return -EBADMSG;
        found.records = (const void *)(found.bytes + header->records_offset);
        found.series = (const void *)(found.bytes + header->series_offset);
        for (uint32_t i = 0; i < found.series_count; i++)
                if (!series_lies_inside(&found, &found.series[i]))
                        return -EBADMSG;
        *view = found;
        return 0;
}

bool extent_view_is_intact(const struct extent_view *view) {
        static const uint8_t zero[4];
        size_t before = offsetof(struct extent_header, crc32c);
        size_t behind = before + sizeof(zero);
        uint32_t crc = crc32c(view->bytes, before);

        crc = crc32c_extend(crc, zero, sizeof(zero));
        return crc32c_extend(crc, view->bytes + behind, view->size_bytes - behind) ==
               view->header->crc32c;
}

struct extent_string extent_view_run_name(const struct extent_view *view) {
        return string_at(view, view->header->run_name_offset, view->header->run_name_size);
}

struct extent_string extent_view_file_path(const struct extent_view *view) {
        return string_at(view, view->header->file_path_offset, view->header->file_path_size);
}

struct extent_string extent_view_tag(const struct extent_view *view,
                                     const struct extent_series *series) {
        return string_at(view, series->tag_offset, series->tag_size);
}

struct extent_string extent_view_plugin(const struct extent_view *view,
                                        const struct extent_series *series) {
        return string_at(view, series->plugin_offset, series->plugin_size);
}

struct extent_string extent_view_display_name(const struct extent_view *view,
                                              const struct extent_series *series) {
        return string_at(view, series->display_name_offset, series->display_name_size);
}

struct extent_string extent_view_description(const struct extent_view *view,
                                             const struct extent_series *series) {
        return string_at(view, series->description_offset, series->description_size);
}

struct extent_string extent_view_content(const struct extent_view *view,
                                         const struct extent_series *series) {
        return string_at(view, series->content_offset, series->content_size);
}

static bool elements_fit(const struct extent_payload_view *payload) {
        uint64_t each = payload->element_bytes ? payload->element_bytes : sizeof(uint64_t);

        return payload->element_count * each <= payload->elements_size;
}

static int payload_init(struct extent_payload_view *payload, const uint8_t *bytes, uint64_t size) {
        const struct extent_payload *head = (const void *)bytes;
        uint64_t data_offset;

        if (size < sizeof(*head) || size < (data_offset = extent_payload_data_offset(head->rank)))
                return -EBADMSG;
        payload->dtype = head->dtype;
        payload->rank_known = head->rank != EXTENT_RANK_UNKNOWN;
        payload->rank = payload->rank_known ? head->rank : 0;
        payload->malformed = head->flags & EXTENT_PAYLOAD_MALFORMED;
        payload->repeated = head->flags & EXTENT_PAYLOAD_REPEATED;
        payload->element_count = head->element_count;
        payload->element_bytes = tensor_type_bytes(head->dtype);
        payload->dimension = head->dimension;
        payload->elements = bytes + data_offset;
        payload->elements_size = size - data_offset;
        if (!elements_fit(payload))
                return -EBADMSG;
        if (payload->element_bytes) {
                payload->elements_size = (uint64_t)payload->element_count * payload->element_bytes;
                return 0;
        }
        payload->end_offset = (const void *)payload->elements;
        payload->elements += (uint64_t)payload->element_count * sizeof(uint64_t);
        payload->elements_size -= (uint64_t)payload->element_count * sizeof(uint64_t);
        return 0;
}

int extent_view_payload(const struct extent_view *view, const struct extent_record *record,
                        struct extent_payload_view *ret_payload) {
        struct extent_payload_view payload = { 0 };
        uint64_t offset = record->payload_offset;
        uint64_t size = record->payload_size;
        int r;

        if (size == 0 || record->flags & EXTENT_RECORD_EXTERNAL ||
            record->kind == EXTENT_KIND_SCALAR || record->kind == EXTENT_KIND_MARK)
                return -ENOENT;
        if (offset % EXTENT_ALIGNMENT || !lies_inside(view, offset, size))
                return -EBADMSG;
        r = payload_init(&payload, view->bytes + offset, size);
        if (r < 0)
                return r;
        *ret_payload = payload;
        return 0;
}

struct extent_string extent_payload_string(const struct extent_payload_view *payload,
                                           uint32_t index) {
        uint64_t begin = index > 0 ? payload->end_offset[index - 1] : 0;
        uint64_t end = payload->end_offset[index];

        if (begin > end || end > payload->elements_size)
                return (struct extent_string){ payload->elements, 0 };
        return (struct extent_string){ payload->elements + begin, end - begin };
}
