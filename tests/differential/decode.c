/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Says how Events or event files are decoded, for comparison with another decoder (compare.py).
 *
 *      decode events|files|extents   on standard input items, each after its size (u32,
 *                                    little-endian)
 *
 * One line of JSON for each item. Bytes and bits are in hex; an Event is told as daemon/decode
 * reads it, a file by the records of the extents that block_decode() makes of it, or (extents) by
 * their bytes.
 */
#include <jansson.h>
#include <openssl/sha.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/base.h"
#include "common/extent_view.h"
#include "daemon/decode/event.h"
#include "daemon/decode/payload.h"
#include "daemon/decode/tensor.h"
#include "daemon/pipeline/block_decode.h"

#define SEGMENT_BYTES 65536
#define ITEM_MOST (64u << 20)
/* what is repeated to fill a shape can be much larger than the input */
#define PAYLOAD_MOST (1u << 20)

static json_t *hex(const void *bytes, uint64_t size) {
        static const char digits[] = "0123456789abcdef";
        CLEANUP(freep) char *text = malloc(2 * size + 1);

        MUST(text);
        for (uint64_t i = 0; i < size; i++) {
                text[2 * i] = digits[((const uint8_t *)bytes)[i] >> 4];
                text[2 * i + 1] = digits[((const uint8_t *)bytes)[i] & 15];
        }
        return json_stringn(text, 2 * size);
}

static json_t *hex_of(struct protobuf_bytes bytes) {
        return hex(bytes.at, bytes.size);
}

static json_t *bits_of(double value) {
        return hex(&value, sizeof(value));
}

/* --- Events --- */

/* Elements as they are; strings each as a 64-bit size and the bytes. */
static json_t *hash_of(const struct extent_payload_view *view) {
        uint64_t most = view->elements_size + 8ull * view->element_count;
        CLEANUP(freep) uint8_t *elements = malloc(most + 1);
        uint8_t digest[SHA256_DIGEST_LENGTH];
        uint64_t size = 0;

        MUST(elements);
        if (view->element_bytes) {
                memcpy(elements, view->elements, view->elements_size);
                size = view->elements_size;
        }
        for (uint32_t i = 0; view->end_offset && i < view->element_count; i++) {
                struct extent_string string = extent_payload_string(view, i);

                memcpy(elements + size, &string.size, 8);
                memcpy(elements + size + 8, string.bytes, string.size);
                size += 8 + string.size;
        }
        SHA256(elements, size, digest);
        return hex(digest, sizeof(digest));
}

/* What tensor_write() made, read as a client does. */
static void tell_payload(const struct tensor *tensor, json_t *told) {
        CLEANUP(freep) uint8_t *memory = aligned_alloc(64, align_up(tensor->payload_bytes, 64));
        struct extent_view image = { .bytes = memory, .size_bytes = tensor->payload_bytes };
        struct extent_record record = { .kind = EXTENT_KIND_TENSOR,
                                        .payload_size = tensor->payload_bytes };
        struct extent_payload_view view;

        MUST(memory);
        tensor_write(tensor, memory);
        MUST(extent_view_payload(&image, &record, &view) == 0);
        MUST(view.rank == tensor->rank || tensor->rank == EXTENT_RANK_UNKNOWN);
        json_object_set_new(told, "sha256", hash_of(&view));
}

static json_t *tell_tensor(const struct event_value *value) {
        json_t *told = json_object(), *shape = json_array();
        struct tensor tensor;

        tensor_read(&value->parts, &tensor);
        json_object_set_new(told, "dtype", json_integer(tensor.dtype));
        for (unsigned i = 0; tensor.rank != EXTENT_RANK_UNKNOWN && i < tensor.rank; i++)
                json_array_append_new(shape, json_integer(tensor.dimension[i]));
        json_object_set_new(told, "shape", shape);
        json_object_set_new(told, "rank_unknown", json_boolean(tensor.rank == EXTENT_RANK_UNKNOWN));
        json_object_set_new(told, "malformed", json_boolean(tensor.malformed));
        json_object_set_new(told, "elements", json_integer(tensor.element_count));
        json_object_set_new(told, "number", bits_of(tensor.value));
        if (tensor.payload_bytes <= PAYLOAD_MOST)
                tell_payload(&tensor, told);
        return told;
}

/* What a legacy value becomes, read as a client does. */
static json_t *tell_modern(const struct event_value *value) {
        CLEANUP(freep) uint8_t *memory = NULL;
        struct extent_payload_view view;
        json_t *shape = json_array();
        struct payload payload;

        payload_plan(value, &payload);
        memory = aligned_alloc(64, align_up(payload.bytes, 64));
        MUST(memory);
        payload_write(&payload, memory);
        MUST(extent_view_payload(
                     &(struct extent_view){ .bytes = memory, .size_bytes = payload.bytes },
                     &(struct extent_record){ .kind = payload.kind, .payload_size = payload.bytes },
                     &view) == 0);
        for (unsigned i = 0; i < view.rank; i++)
                json_array_append_new(shape, json_integer(view.dimension[i]));
        return json_pack("{sI sI so so}", "flags", (json_int_t)payload.flags, "dtype",
                         (json_int_t)view.dtype, "shape", shape, "sha256", hash_of(&view));
}

/* The bytes of a message that may be written in several parts. */
static json_t *tell_parts(const struct event_value *value) {
        struct event_parts parts = value->parts;
        struct protobuf_bytes part;
        json_t *told = json_array();

        while (event_parts_next(&parts, &part))
                json_array_append_new(told, hex_of(part));
        return told;
}

static json_t *tell_metadata(const struct event_metadata *metadata) {
        return json_pack("[oooo I]", hex_of(metadata->plugin), hex_of(metadata->content),
                         hex_of(metadata->display_name), hex_of(metadata->description),
                         (json_int_t)metadata->data_class);
}

static const struct {
        const char *name;
        enum { NOTHING, NUMBER, TENSOR, PARTS, DATA } content;
} written[] = {
        [EXTENT_WRITTEN_NONE] = { "none", NOTHING },
        [EXTENT_WRITTEN_SIMPLE_VALUE] = { "simple_value", NUMBER },
        [EXTENT_WRITTEN_TENSOR] = { "tensor", TENSOR },
        [EXTENT_WRITTEN_IMAGE] = { "image", PARTS },
        [EXTENT_WRITTEN_HISTOGRAM] = { "histo", PARTS },
        [EXTENT_WRITTEN_AUDIO] = { "audio", PARTS },
        [EXTENT_WRITTEN_OLD_HISTOGRAM] = { "obsolete_old_style_histogram", DATA },
        [EXTENT_WRITTEN_GRAPH] = { "graph_def", DATA },
        [EXTENT_WRITTEN_RUN_METADATA] = { "tagged_run_metadata", DATA },
};

static json_t *tell_value(const struct event_value *value) {
        json_t *told = json_object();

        json_object_set_new(told, "tag", hex_of(value->tag));
        json_object_set_new(told, "written", json_string(written[value->written_as].name));
        if (value->has_metadata)
                json_object_set_new(told, "metadata", tell_metadata(&value->metadata));
        switch (written[value->written_as].content) {
        case NOTHING:
                break;
        case NUMBER:
                json_object_set_new(told, "bits", json_integer(value->simple_value));
                break;
        case TENSOR:
                json_object_set_new(told, "tensor", tell_tensor(value));
                break;
        case PARTS:
                json_object_set_new(told, "parts", tell_parts(value));
                json_object_set_new(told, "modern", tell_modern(value));
                break;
        case DATA:
                json_object_set_new(told, "data", hex_of(value->data));
                break;
        }
        return told;
}

static const char *const what_names[] = {
        [EVENT_EMPTY] = "none",     [EVENT_FILE_VERSION] = "file_version",
        [EVENT_VALUES] = "values",  [EVENT_SESSION_LOG] = "session_log",
        [EVENT_NO_VALUE] = "other",
};

static json_t *tell_values(const struct event *event) {
        const struct event_value *value;
        json_t *told = json_array();
        struct event_cursor cursor;

        event_cursor_init(&cursor, event);
        while ((value = event_cursor_next(&cursor)))
                json_array_append_new(told, tell_value(value));
        MUST(json_array_size(told) == event->value_count);
        return told;
}

static json_t *tell_event(const uint8_t *payload, uint64_t size) {
        struct event event;

        if (event_decode(payload, size, &event))
                return json_pack("{sb}", "accepted", 0);
        return json_pack("{sb sI so ss sI so}", "accepted", 1, "step", (json_int_t)event.step,
                         "wall_time", bits_of(event.wall_time), "what", what_names[event.what],
                         "status", (json_int_t)event.session_status, "values", tell_values(&event));
}

/* --- Files --- */

static const struct block_file file = {
        .source_url = "file:///x",
        .run_name = "run",
        .run_name_size = 3,
        .path = "run/file",
        .path_size = 8,
};

static json_t *tell_record(const struct extent_view *view, const struct extent_record *record) {
        const struct extent_series *series = extent_view_series_of(view, record);
        struct extent_string tag = { NULL, 0 };

        if (series)
                tag = extent_view_tag(view, series);
        return json_pack("[IIIboIo]", (json_int_t)record->source_offset,
                         (json_int_t)record->source_size, (json_int_t)record->value_index,
                         record->kind == EXTENT_KIND_MARK, hex(tag.bytes, tag.size),
                         (json_int_t)record->step, bits_of(record->wall_time));
}

/* Extents follow one another: where one ends the next begins. */
static struct extent_view view_of(const uint8_t *image, const struct block_input *input,
                                  const struct block_output *output) {
        struct extent_view view;

        MUST(extent_view_init(&view, image, output->extent_bytes) == 0);
        MUST(extent_view_is_intact(&view) && view.record_count == output->record_count);
        MUST(view.header->begin_offset == input->begin.offset &&
             view.header->begin_index == input->begin.index);
        return view;
}

static void tell_records(const struct extent_view *view, json_t *told) {
        for (uint32_t i = 0; i < view->record_count; i++)
                json_array_append_new(told, tell_record(view, extent_view_record(view, i)));
}

static void tell_image(const struct extent_view *view, json_t *told) {
        json_array_append_new(told, hex(view->bytes, view->size_bytes));
}

/* Calls tell_extent() for each. Returns where decoding would go on when the file has grown. */
static uint64_t for_each_extent(const uint8_t *bytes, uint64_t size,
                                void (*tell_extent)(const struct extent_view *view, json_t *told),
                                json_t *told) {
        static _Alignas(EXTENT_ALIGNMENT) uint8_t segment[SEGMENT_BYTES];
        struct block_output output;
        struct block_input input = {
                .file = &file,
                .bytes = bytes,
                .size_bytes = size,
                .last = true,
                .record_max_bytes = UINT64_MAX,
                .payload_inline_max_bytes = SEGMENT_BYTES / 2,
                .segment_bytes = SEGMENT_BYTES,
        };
        int r;

        do {
                r = block_decode(&input, segment, SEGMENT_BYTES, &output);
                if (output.extent_bytes > 0) {
                        struct extent_view view = view_of(segment, &input, &output);

                        tell_extent(&view, told);
                }
                input.begin = output.next;
        } while (r == STAGE_FULL);
        return output.next.offset;
}

static json_t *tell_file(const uint8_t *bytes, uint64_t size) {
        json_t *records = json_array();
        uint64_t rest = for_each_extent(bytes, size, tell_records, records);

        return json_pack("{sosI}", "records", records, "rest", (json_int_t)rest);
}

static json_t *tell_extents(const uint8_t *bytes, uint64_t size) {
        json_t *images = json_array();

        for_each_extent(bytes, size, tell_image, images);
        return images;
}

/* --- Items --- */

/* In memory of exactly its size. NULL: there is none. */
static uint8_t *read_item(uint32_t *ret_size) {
        uint8_t *bytes;

        if (fread(ret_size, sizeof(*ret_size), 1, stdin) != 1 || *ret_size > ITEM_MOST)
                return NULL;
        bytes = malloc(*ret_size ? *ret_size : 1);
        MUST(bytes);
        if (fread(bytes, 1, *ret_size, stdin) == *ret_size)
                return bytes;
        free(bytes);
        return NULL;
}

static const struct {
        const char *name;
        json_t *(*tell)(const uint8_t *bytes, uint64_t size);
} modes[] = {
        { "events", tell_event },
        { "files", tell_file },
        { "extents", tell_extents },
};

static void decode_items(json_t *(*tell)(const uint8_t *bytes, uint64_t size)) {
        uint8_t *bytes;
        uint32_t size;

        while ((bytes = read_item(&size))) {
                json_t *told = tell(bytes, size);

                json_dumpf(told, stdout, JSON_COMPACT);
                putchar('\n');
                json_decref(told);
                free(bytes);
        }
}

int main(int argc, char **argv) {
        for (size_t i = 0; i < ARRAY_SIZE(modes); i++) {
                if (argc != 2 || strcmp(argv[1], modes[i].name) != 0)
                        continue;
                decode_items(modes[i].tell);
                return ferror(stdin) || fflush(stdout) ? 1 : 0;
        }
        fprintf(stderr, "usage: decode events|files|extents\n");
        return 2;
}
