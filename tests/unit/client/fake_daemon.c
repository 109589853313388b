/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/unit/client/fake_daemon.h"

#include <check.h>
#include <errno.h>
#include <fcntl.h>
#include <jansson.h>
#include <math.h>
#include <poll.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/un.h>

#include "common/base.h"

static void *make_area(uint64_t size, int *ret_fd) {
        void *memory;

        *ret_fd = memfd_create("fake", MFD_CLOEXEC | MFD_ALLOW_SEALING);
        ck_assert_int_ge(*ret_fd, 0);
        ck_assert_int_eq(ftruncate(*ret_fd, (off_t)size), 0);
        memory = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, *ret_fd, 0);
        ck_assert_ptr_ne(memory, MAP_FAILED);
        return memory;
}

void fake_daemon_init(struct fake_daemon *fake) {
        int pair[2];

        memset(fake, 0, sizeof(*fake));
        ck_assert_int_eq(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair), 0);
        ck_assert_int_eq(pipe2(fake->stop_fds, O_CLOEXEC), 0);
        fake->client_fd = pair[0];
        fake->server_fd = pair[1];
        fake->listen_fd = -1;
        fake->unsealed = -1;
        fake->hello = "{\"protocol\":1,\"sources\":[\"/data\"],\"settings\":\"x\"}";
        fake->series = "{\"series\":[]}";

        fake->data = make_area(FAKE_DATA_BYTES, &fake->fds[0]);
        fake->queue = make_area(RING_QUEUE_BYTES, &fake->fds[1]);
        fake->ack = make_area(RING_ACK_BYTES, &fake->fds[2]);
        fake->super = (struct ring_super *)fake->data;
        fake->super->magic = RING_MAGIC;
        fake->super->abi_major = RING_ABI_MAJOR;
        fake->super->instance_id = 77;
        fake->super->size_bytes = FAKE_DATA_BYTES;
        fake->super->table_offset = RING_TABLE_OFFSET;
        fake->super->segments_offset = FAKE_SEGMENTS_OFFSET;
        fake->super->segment_bytes = FAKE_SEGMENT_BYTES;
        fake->super->segment_count = FAKE_SEGMENTS;
        fake->queue->magic = RING_QUEUE_MAGIC;
        fake->queue->abi_major = RING_ABI_MAJOR;
        fake->queue->entry_count = RING_QUEUE_ENTRIES;
        fake->queue->entries_offset = RING_QUEUE_ENTRIES_OFFSET;
        fake->queue->instance_id = 77;
}

/* ---- The thread ------------------------------------------------------------------------------ */

static void send_frame(int fd, enum wire_type type, uint16_t flags, const void *body, size_t size,
                       const int *fds, unsigned fd_count) {
        struct iovec part = { (void *)(uintptr_t)body, size };
        struct wire_writer writer;

        wire_writer_init(&writer);
        MUST(wire_writer_add(&writer, type, flags, &part, 1, fds, fd_count) == 0);
        while (wire_writer_flush(&writer, fd) == -EAGAIN)
                poll(&(struct pollfd){ .fd = fd, .events = POLLOUT }, 1, -1);
        wire_writer_deinit(&writer);
}

static void answer(struct fake_daemon *fake, const json_t *request, const char *member,
                   const char *text, const int *fds, unsigned fd_count) {
        json_t *message = json_pack("{s:s, s:O, s:o}", "jsonrpc", "2.0", "id",
                                    json_object_get(request, "id"), member,
                                    json_loads(text, 0, NULL));
        CLEANUP(freep) char *dump = json_dumps(message, JSON_COMPACT);

        send_frame(fake->server_fd, WIRE_JSON, 0, dump, strlen(dump), fds, fd_count);
        json_decref(message);
}

/* Half of the extent in each of two frames. */
static void send_payload(struct fake_daemon *fake) {
        struct ring_entry entry = { .segment = UINT32_MAX,
                                    .size_bytes = fake->payload_bytes,
                                    .record_count = 1 };
        CLEANUP(freep) uint8_t *body = malloc(sizeof(entry) + fake->payload_bytes);
        uint32_t half = fake->payload_bytes / 2;

        memcpy(body, &entry, sizeof(entry));
        memcpy(body + sizeof(entry), fake->payload, fake->payload_bytes);
        send_frame(fake->server_fd, WIRE_EXTENT, WIRE_MORE, body, sizeof(entry) + half, NULL, 0);
        send_frame(fake->server_fd, WIRE_EXTENT, 0, body + sizeof(entry) + half,
                   fake->payload_bytes - half, NULL, 0);
}

static void answer_payload(struct fake_daemon *fake, const json_t *request) {
        int fd;

        if (fake->payload_error) {
                answer(fake, request, "error", fake->payload_error, NULL, 0);
                return;
        }
        if (fake->is_payload_inline) {
                answer(fake, request, "result", "{\"transport\":\"inline\"}", NULL, 0);
                send_payload(fake);
                return;
        }
        fd = memfd_create("payload", MFD_CLOEXEC | MFD_ALLOW_SEALING);
        MUST(write(fd, fake->payload, fake->payload_bytes) == (ssize_t)fake->payload_bytes);
        MUST(fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE) == 0);
        answer(fake, request, "result", "{\"transport\":\"map\"}", &fd, 1);
        close(fd);
}

static void answer_subscribe(struct fake_daemon *fake, const json_t *request) {
        json_t *params = json_object_get(request, "params");
        bool is_map = strcmp(json_string_value(json_object_get(params, "transport")), "map") == 0;

        free(fake->last_subscribe);
        fake->last_subscribe = json_dumps(params, JSON_COMPACT | JSON_SORT_KEYS);
        if (fake->subscribe_error)
                answer(fake, request, "error", fake->subscribe_error, NULL, 0);
        else
                answer(fake, request, "result", "{\"session\":1}", fake->fds,
                       is_map && !fake->sends_no_fds ? 3 : 0);
}

static void handle_json(struct fake_daemon *fake, const struct wire_frame *frame) {
        json_t *request = json_loadb((const char *)frame->body, frame->size_bytes, 0, NULL);
        const char *method = json_string_value(json_object_get(request, "method"));

        if (strcmp(method, "hello") == 0) {
                answer(fake, request, "result", fake->hello, NULL, 0);
        } else if (strcmp(method, "subscribe") == 0) {
                answer_subscribe(fake, request);
        } else if (strcmp(method, "payload") == 0) {
                answer_payload(fake, request);
        } else if (strcmp(method, "series") == 0) {
                answer(fake, request, "result", fake->series, NULL, 0);
        } else if (strcmp(method, "ack") == 0) {
                atomic_store(&fake->acked,
                             (unsigned long long)json_integer_value(json_object_get(
                                     json_object_get(request, "params"), "position")));
                atomic_fetch_add(&fake->acks, 1);
        } else {
                answer(fake, request, "error", "{\"code\":-32601,\"message\":\"no such method\"}",
                       NULL, 0);
        }
        json_decref(request);
}

static void *serve(void *userdata) {
        struct fake_daemon *fake = userdata;
        struct pollfd fds[2] = { { .fd = fake->stop_fds[0], .events = POLLIN } };
        struct wire_reader reader;
        struct wire_frame frame;

        if (fake->listen_fd >= 0)
                fake->server_fd = accept4(fake->listen_fd, NULL, NULL, SOCK_CLOEXEC);
        fds[1] = (struct pollfd){ .fd = fake->server_fd, .events = POLLIN };
        wire_reader_init(&reader, WIRE_CLIENT_BODY_MAX, false, false);
        while (poll(fds, 2, -1) > 0 && !fds[0].revents) {
                if (wire_reader_receive(&reader, fake->server_fd) < 0)
                        break;
                while (wire_reader_next(&reader, &frame) == 0) {
                        if (frame.type == WIRE_WAKE)
                                atomic_fetch_add(&fake->wakes, 1);
                        else
                                handle_json(fake, &frame);
                }
        }
        wire_reader_deinit(&reader);
        return NULL;
}

/* ---- Life ------------------------------------------------------------------------------------ */

static void seal(struct fake_daemon *fake) {
        for (int i = 0; i < 3; i++) {
                int seals = F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL |
                            (i < 2 ? F_SEAL_FUTURE_WRITE : 0);

                if (fake->unsealed == i)
                        seals &= ~fake->unsealed_seal;
                if (seals & F_SEAL_SEAL)
                        ck_assert_int_eq(fcntl(fake->fds[i], F_ADD_SEALS, seals & ~F_SEAL_SEAL), 0);
                ck_assert_int_eq(fcntl(fake->fds[i], F_ADD_SEALS, seals), 0);
        }
}

void fake_daemon_start(struct fake_daemon *fake) {
        seal(fake);
        ck_assert_int_eq(pthread_create(&fake->thread, NULL, serve, fake), 0);
}

void fake_daemon_listen(struct fake_daemon *fake, const char *path) {
        struct sockaddr_un address = { .sun_family = AF_UNIX };

        close(fake->client_fd);
        close(fake->server_fd);
        fake->client_fd = fake->server_fd = -1;
        fake->listen_fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
        strcpy(address.sun_path, path);
        ck_assert_int_eq(bind(fake->listen_fd, (struct sockaddr *)&address, sizeof(address)), 0);
        ck_assert_int_eq(listen(fake->listen_fd, 1), 0);
        fake_daemon_start(fake);
}

void fake_daemon_stop(struct fake_daemon *fake) {
        if (fake->stop_fds[1] < 0)
                return;
        close(fake->stop_fds[1]);
        pthread_join(fake->thread, NULL);
        close(fake->stop_fds[0]);
        close(fake->server_fd);
        fake->stop_fds[1] = -1;
}

void fake_daemon_deinit(struct fake_daemon *fake) {
        fake_daemon_stop(fake);
        if (fake->listen_fd >= 0)
                close(fake->listen_fd);
        munmap(fake->data, FAKE_DATA_BYTES);
        munmap(fake->queue, RING_QUEUE_BYTES);
        munmap(fake->ack, RING_ACK_BYTES);
        for (int i = 0; i < 3; i++)
                close(fake->fds[i]);
        free(fake->last_subscribe);
}

void fake_daemon_push(struct fake_daemon *fake, const struct ring_entry *entry) {
        struct ring_entry *entries = (struct ring_entry *)((uint8_t *)fake->queue +
                                                           RING_QUEUE_ENTRIES_OFFSET);

        entries[fake->pushed % RING_QUEUE_ENTRIES] = *entry;
        atomic_store_explicit(&fake->queue->tail, ++fake->pushed, memory_order_release);
}

struct ring_entry fake_daemon_place(struct fake_daemon *fake, uint32_t segment, const void *extent,
                                    uint64_t size_bytes) {
        const struct extent_header *header = extent;

        memcpy(fake->data + FAKE_SEGMENTS_OFFSET + segment * FAKE_SEGMENT_BYTES, extent,
               size_bytes);
        return (struct ring_entry){
                .segment = segment,
                .size_bytes = (uint32_t)size_bytes,
                .record_count = header->record_count,
                .file_id = header->file_id,
                .run_id = header->run_id,
        };
}

void fake_daemon_send(struct fake_daemon *fake, enum wire_type type, uint16_t flags,
                      const void *body, size_t size) {
        send_frame(fake->server_fd, type, flags, body, size, NULL, 0);
}

/* ---- Extents by hand ------------------------------------------------------------------------- */

struct builder {
        uint8_t *memory;
        uint64_t size;
};

static uint32_t put(struct builder *builder, const void *bytes, size_t size, uint64_t alignment) {
        uint64_t at = align_up(builder->size, alignment);

        memcpy(builder->memory + at, bytes, size);
        builder->size = at + size;
        MUST(builder->size <= FAKE_EXTENT_BYTES);
        return (uint32_t)at;
}

static void put_text(struct builder *builder, const char *text, uint32_t *ret_offset,
                     uint32_t *ret_size) {
        *ret_size = (uint32_t)strlen(text);
        *ret_offset = put(builder, text, *ret_size, 1);
}

static uint64_t finish(struct builder *builder, const struct fake_extent *fake,
                       struct extent_header *header, struct extent_series *series,
                       const char *const *tags, const char *const *plugins) {
        for (uint32_t i = 0; i < header->series_count; i++) {
                series[i] = (struct extent_series){
                        .series_id = 100 + i % 2,
                        .data_class = EXTENT_CLASS_UNKNOWN,
                        .flags = (plugins[i][0] ? EXTENT_SERIES_METADATA : 0) |
                                 (i == 2 ? EXTENT_SERIES_AGAIN : 0),
                        .written_as = EXTENT_WRITTEN_TENSOR,
                };
                put_text(builder, tags[i], &series[i].tag_offset, &series[i].tag_size);
                put_text(builder, plugins[i], &series[i].plugin_offset, &series[i].plugin_size);
        }
        put_text(builder, fake->run, &header->run_name_offset, &header->run_name_size);
        put_text(builder, fake->path, &header->file_path_offset, &header->file_path_size);
        header->series_offset = put(builder, series, header->series_count * sizeof(*series),
                                    EXTENT_ALIGNMENT);
        builder->size = align_up(builder->size, EXTENT_ALIGNMENT);
        header->magic = EXTENT_MAGIC;
        header->version = EXTENT_VERSION;
        header->size_bytes = builder->size;
        header->source_id = fake->source_id;
        header->file_id = fake->file_id;
        header->file_version = fake->file_version;
        header->begin_offset = 0;
        header->end_offset = 40 * (uint64_t)header->record_count;
        header->min_wall_time = 1000;
        if (!header->payload_offset)
                header->payload_offset = builder->size;
        memcpy(builder->memory, header, sizeof(*header));
        return builder->size;
}

uint64_t fake_extent_write(void *memory, const struct fake_extent *fake) {
        static const char *const tags[] = { "loss", "acc", "loss" };
        static const char *const plugins[] = { "scalars", "other", "scalars" };
        static const char *const late_plugins[] = { "", "other", "scalars" };
        struct builder builder = { memory, sizeof(struct extent_header) };
        struct extent_header header = { .record_count = fake->record_count,
                                        .series_count = fake->again_at ? 3 : 2 };
        struct extent_series series[3];

        memset(memory, 0, FAKE_EXTENT_BYTES);
        header.records_offset = sizeof(header);
        for (uint32_t i = 0; i < fake->record_count; i++) {
                struct extent_record record = { .step = i,
                                                .wall_time = 1000 + i,
                                                .value = i / 2.0,
                                                .series = i % 2 ? 1
                                                          : fake->again_at && i >= fake->again_at
                                                                  ? 2
                                                                  : 0,
                                                .kind = EXTENT_KIND_SCALAR,
                                                .dtype = 1,
                                                .source_offset = 40 * (uint64_t)i,
                                                .source_size = 40 };

                put(&builder, &record, sizeof(record), 64);
        }
        return finish(&builder, fake, &header, series, tags,
                      fake->again_at ? late_plugins : plugins);
}

uint64_t fake_extent_write_tensor(void *memory, const struct fake_extent *fake, bool is_external) {
        static const char *const tags[] = { "t" };
        static const char *const plugins[] = { "mine" };
        static const float elements[] = { 1.5f, -2 };
        static const struct extent_payload head = { .dtype = 1, .rank = 1, .element_count = 2 };
        static const int64_t dimension = 2;
        struct builder builder = { memory, sizeof(struct extent_header) };
        struct extent_header header = { .record_count = 1,
                                        .series_count = 1,
                                        .records_offset = sizeof(struct extent_header) };
        struct extent_record record = { .step = 5,
                                        .wall_time = 1000,
                                        .kind = EXTENT_KIND_TENSOR,
                                        .dtype = 1,
                                        .source_offset = 40,
                                        .source_size = 60,
                                        .value_index = 3 };
        struct extent_series series[1];

        memset(memory, 0, FAKE_EXTENT_BYTES);
        builder.size += sizeof(record);
        if (is_external) {
                record.flags = EXTENT_RECORD_EXTERNAL;
                record.payload_size = 72;
        } else {
                record.payload_offset = header.payload_offset = put(&builder, &head, sizeof(head),
                                                                    64);
                put(&builder, &dimension, sizeof(dimension), 8);
                put(&builder, elements, sizeof(elements), 64);
                record.payload_size = builder.size - record.payload_offset;
        }
        memcpy(builder.memory + sizeof(header), &record, sizeof(record));
        return finish(&builder, fake, &header, series, tags, plugins);
}
