/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/unit/daemon/pipeline/rig.h"

#include <check.h>
#include <errno.h>
#include <string.h>

#include "common/base.h"
#include "common/extent_view.h"
#include "common/name_id.h"
#include "daemon/pipeline/feed.h"
#include "daemon/pipeline/pipeline_state.h"

#define URL "fake://logs"

struct rig rig;

/* --- Events of the pipeline --- */

static void on_run_gone(void *userdata, const struct catalog_run *run) {
        (void)userdata;
        ck_assert_ptr_nonnull(run->name.bytes);
        rig.gone_runs++;
}

static void on_file_replaced(void *userdata, const struct catalog_file *file) {
        (void)userdata;
        ck_assert_ptr_nonnull(file->path.bytes);
        rig.replaced++;
}

static void on_file_damaged(void *userdata, const struct catalog_file *file,
                            const struct damaged_place *first) {
        (void)userdata;
        (void)file;
        ck_assert_int_ne(first->reason, DAMAGE_NONE);
        rig.damaged++;
}

static void on_file_failed(void *userdata, const struct catalog_file *file) {
        (void)userdata;
        ck_assert_ptr_nonnull(file->failure);
        rig.failed_files++;
}

static void on_source_failing(void *userdata, const struct catalog_source *source) {
        (void)userdata;
        (void)source;
        rig.failing++;
}

static void on_source_recovered(void *userdata, const struct catalog_source *source) {
        (void)userdata;
        (void)source;
        rig.recovered++;
}

static const struct pipeline_events pipeline_events = {
        .run_gone = on_run_gone,
        .file_replaced = on_file_replaced,
        .file_damaged = on_file_damaged,
        .file_failed = on_file_failed,
        .source_failing = on_source_failing,
        .source_recovered = on_source_recovered,
};

/* --- The rig --- */

const struct pipeline_options rig_usual = {
        .ring_bytes = RIG_RING_BYTES,
        .huge = RING_HUGE_OFF,
        .decoders = 1,
        .inflight_bytes = 64u << 20,
        .connections_max = 64,
        .part_bytes = 128u << 10,
        .whole_max_bytes = 1u << 20,
        .payload_inline_max_bytes = 256u << 10,
        .poll_ns = -1,
        .reread_ns = 0,
        .hold_ns = 3600 * 1000000000ull, /* no test depends on time */
};

void rig_prepare(void) {
        memset(&rig, 0, sizeof(rig));
        ck_assert_int_eq(uv_loop_init(&rig.loop), 0);
}

int rig_add_source(const char **ret_message) {
        char url[] = URL, name[] = "logs";
        int r = pipeline_add_source(
                rig.pipeline, &(struct config_source){ .url = url, .name = name }, ret_message);

        if (r < 0)
                return r;
        pipeline_listen(rig.pipeline, &pipeline_events, NULL);
        rig.source = pipeline_catalog(rig.pipeline)->sources[0];
        rig.store = (struct fake_store *)rig.source->store;
        return 0;
}

void rig_forget(void) {
        for (unsigned i = 0; i < rig.file_count; i++)
                events_free(&rig.files[i].events);
}

void rig_begin(const struct pipeline_options *options) {
        const char *message = NULL;

        rig_prepare();
        ck_assert_int_eq(pipeline_new(&rig.loop, options ? options : &rig_usual, &rig.pipeline), 0);
        ck_assert_int_eq(rig_add_source(&message), 0);
        rig_quiet();
        ck_assert_uint_eq(rig.store->lists, 1);
}

static void on_closed(void *userdata) {
        *(bool *)userdata = true;
}

void rig_end(void) {
        struct ring_status status;
        bool closed = false;

        ring_status(pipeline_ring(rig.pipeline), &status);
        if (list_is_empty(
                    &rig.pipeline->ahead)) /* what is held for parts that wait for their turn */
                ck_assert_uint_eq(status.segments_pinned, 0);
        pipeline_close(rig.pipeline, on_closed, &closed);
        uv_run(&rig.loop, UV_RUN_DEFAULT);
        ck_assert(closed);
        ck_assert_int_eq(uv_loop_close(&rig.loop), 0);
        uv_library_shutdown(); /* libuv keeps a pipe of its own to the end */
        rig_forget();
}

struct rig_file *rig_add_file(const char *name, int64_t steps) {
        struct rig_file *file = &rig.files[rig.file_count++];

        MUST(rig.file_count <= RIG_FILES_MOST);
        snprintf(file->name, sizeof(file->name), "%s", name);
        file->id = name_id_file(URL, name, strlen(name));
        events_version(&file->events);
        rig_append(file, steps);
        return file;
}

void rig_append(struct rig_file *file, int64_t steps) {
        for (; steps > 0; steps--, file->steps++)
                events_scalar(&file->events, file->steps, "loss", (float)file->steps);
        file->listed = file->events.size;
        file->mtime_ns++;
}

void rig_list(void) {
        for (unsigned i = 0; i < rig.file_count; i++) {
                const struct rig_file *file = &rig.files[i];

                if (!file->hidden)
                        (file->archived ? fake_store_archived_row : fake_store_tagged_row)(
                                rig.store, file->name, file->listed, file->mtime_ns,
                                file->listed_tag);
        }
        fake_store_listed(rig.store, STORE_OK);
        rig_quiet();
}

void rig_list_again(void) {
        if (!rig.store->callbacks)
                watch_now(rig.source->watch);
        rig_quiet();
        rig_list();
}

struct catalog_file *rig_catalog_file(const struct rig_file *file) {
        return catalog_find_file(pipeline_catalog(rig.pipeline), file->id);
}

static bool any_decoding(const struct list *jobs) {
        for (const struct list *node = jobs->next; node != jobs; node = node->next)
                if (list_owner(node, struct job, node)->decoding)
                        return true;
        return false;
}

static bool any_tasks(void) {
        const struct catalog_source *source = rig.source;

        for (size_t i = 0; source && i < source->run_count; i++)
                for (size_t k = 0; k < source->runs[i]->file_count; k++) {
                        const struct feed *feed = source->runs[i]->files[k]->blocks;

                        if (feed && feed->work &&
                            (feed->decoding || any_decoding(&feed->work->parts) ||
                             any_decoding(&feed->work->leaving) ||
                             any_decoding(&feed->work->refetches)))
                                return true;
                }
        return false;
}

/* A few turns: what one callback starts, another one ends in the next. */
void rig_quiet(void) {
        for (unsigned still = 0; still < 4; still++) {
                if (any_tasks()) {
                        uv_run(&rig.loop, UV_RUN_ONCE); /* a decoder will wake it */
                        still = 0;
                } else {
                        if (uv_is_active((uv_handle_t *)&rig.pipeline->pass))
                                still = 0;
                        uv_run(&rig.loop, UV_RUN_NOWAIT);
                }
        }
        if (rig.store && rig.store->read_count > rig.most_under_way)
                rig.most_under_way = rig.store->read_count;
}

static const struct rig_file *file_of(const char *name) {
        for (unsigned i = 0; i < rig.file_count; i++)
                if (!strcmp(rig.files[i].name, name))
                        return &rig.files[i];
        ck_abort_msg("a read of %s", name);
}

void rig_answer(unsigned at) {
        const struct rig_file *file = file_of(rig.store->reads[at]->name);

        fake_store_answer(rig.store, at, file->events.bytes, file->events.size, file->tag);
        rig_quiet();
}

void rig_answer_all(void) {
        while (rig.store->read_count > 0)
                rig_answer(0);
}

int rig_read_of(const struct rig_file *file) {
        for (unsigned i = 0; i < rig.store->read_count; i++)
                if (!strcmp(rig.store->reads[i]->name, file->name))
                        return (int)i;
        return -1;
}

int rig_store_open(uv_loop_t *loop, const char *url, struct store **ret_store) {
        struct fake_store *fake = fake_store_new(loop, url);

        if (!fake)
                return -ENOMEM;
        *ret_store = &fake->store;
        return 0;
}

/* --- Sessions --- */

static bool session_has_room(void *userdata) {
        const struct session *session = userdata;

        return session->pushed - session->acked < session->queue_entries;
}

/* The records of the entry that are values: the steps go up by one, and the value is the step. */
static void check_records(struct session *session, struct session_entry *entry, unsigned file) {
        const struct extent_header *header = entry->extent;
        struct extent_view view;

        ck_assert_int_eq(extent_view_init(&view, entry->extent, entry->entry.size_bytes), 0);
        ck_assert(extent_view_is_intact(&view));
        ck_assert_uint_eq(header->file_id, entry->entry.file_id);
        ck_assert_uint_eq(header->run_id, entry->entry.run_id);
        ck_assert_uint_eq(header->begin_offset, entry->entry.source_offset);
        ck_assert_uint_eq(header->file_version, rig_catalog_file(&rig.files[file])->version);
        ck_assert_uint_le((uint64_t)entry->entry.first_record + entry->entry.record_count,
                          header->record_count);
        entry->first_step = entry->last_step = -1;
        for (uint32_t i = 0; i < entry->entry.record_count; i++) {
                const struct extent_record *record = &view.records[entry->entry.first_record + i];

                session->records++;
                if (record->kind == EXTENT_KIND_MARK)
                        continue;
                if (entry->first_step < 0)
                        entry->first_step = record->step;
                entry->last_step = record->step;
                if (record->kind != EXTENT_KIND_SCALAR)
                        continue;
                if (session->next_step[file] >= 0 && !session->any_step) {
                        /* For each record Check's own assertions would cost a system call. */
                        if (record->step != session->next_step[file] ||
                            record->value != (double)record->step)
                                ck_abort_msg("step %lld where %lld was next",
                                             (long long)record->step,
                                             (long long)session->next_step[file]);
                }
                session->next_step[file] = record->step + 1;
        }
}

static unsigned file_at(uint64_t file_id) {
        for (unsigned i = 0; i < rig.file_count; i++)
                if (rig.files[i].id == file_id)
                        return i;
        ck_abort_msg("an entry of an unknown file");
}

static void session_push(void *userdata, const struct ring_entry *pushed, const void *extent) {
        struct session *session = userdata;
        struct session_entry *entry = &session->entries[session->pushed];

        ck_assert(session_has_room(session));
        ck_assert_uint_lt(session->pushed, RIG_ENTRIES_MOST);
        *entry = (struct session_entry){ .entry = *pushed, .extent = extent };
        session->pushed++;
        if (extent) {
                struct ring *ring = pipeline_ring(rig.pipeline);

                ck_assert_ptr_eq(extent,
                                 ring_segment_memory(ring, pushed->segment) + pushed->offset_bytes);
                ck_assert_uint_eq(pushed->generation,
                                  ring_segment_generation(ring, pushed->segment));
                ck_assert_uint_gt(ring_pins(ring, pushed->segment), 0); /* the pin comes first */
                check_records(session, entry, file_at(pushed->file_id));
                return;
        }
        ck_assert_uint_eq(pushed->size_bytes, 0);
        if (pushed->flags & RING_ENTRY_END) {
                session->ends++;
                return;
        }
        if (pushed->flags & RING_ENTRY_LOST) {
                session->lost += pushed->lost_count;
                session->next_step[file_at(pushed->file_id)] = -1;
        }
        if (pushed->flags & RING_ENTRY_REPLACED) {
                session->replaced++;
                session->next_step[file_at(pushed->file_id)] = 0;
        }
        if (pushed->flags & RING_ENTRY_GONE)
                session->gone++;
}

static void session_flush(void *userdata) {
        struct session *session = userdata;

        session->flushed = session->pushed;
}

static uint64_t session_set_kick(void *userdata, uint64_t kick_at) {
        struct session *session = userdata;

        ck_assert_uint_gt(kick_at, session->lie ? 0 : session->acked);
        ck_assert_uint_le(kick_at, session->pushed);
        session->kick_at = kick_at;
        session->kicks++;
        return session->lie ? session->lie : session->acked;
}

static void session_source_failed(void *userdata, const struct catalog_source *source) {
        struct session *session = userdata;

        ck_assert_ptr_eq(source, rig.source);
        session->sources_failed++;
}

static void session_broken(void *userdata, int error) {
        struct session *session = userdata;

        ck_assert_int_eq(session->error, 0);
        session->error = error;
}

static const struct reader_operations session_operations = {
        session_has_room, session_push,          session_flush,
        session_set_kick, session_source_failed, session_broken,
};

void session_prepare(struct session *session) {
        *session = (struct session){ .kick_at = UINT64_MAX, .queue_entries = RING_QUEUE_ENTRIES };
        session->entries = calloc(RIG_ENTRIES_MOST, sizeof(session->entries[0]));
        ck_assert_ptr_nonnull(session->entries);
}

int session_try(struct session *session, const struct reader_options *options) {
        static const struct reader_options whole = { .from = READER_FROM_START };
        uint64_t ring_bytes;

        if (rig.source->listings > 0)
                rig.source->listed_at_ns = rig.stale ? 0 : uv_hrtime();
        return reader_new(rig.pipeline, options ? options : &whole, &session_operations, session,
                          &session->reader, &ring_bytes);
}

void session_begin(struct session *session, const struct reader_options *options) {
        session_prepare(session);
        ck_assert_int_eq(session_try(session, options), 0);
        ck_assert_uint_eq(session->pushed, 0); /* never from inside */
}

void session_end(struct session *session) {
        ck_assert_uint_eq(session->flushed, session->pushed);
        session->reader = reader_free(session->reader);
        free(session->entries);
        session->entries = NULL;
        rig_quiet();
}

/* What is acknowledged was readable up to now. */
static void check_unread(struct session *session, uint64_t acked) {
        for (uint64_t i = session->acked; i < acked; i++) {
                const struct session_entry *entry = &session->entries[i];
                struct extent_view view;

                if (!entry->extent)
                        continue;
                ck_assert_uint_eq(
                        ring_segment_generation(pipeline_ring(rig.pipeline), entry->entry.segment),
                        entry->entry.generation);
                ck_assert_int_eq(extent_view_init(&view, entry->extent, entry->entry.size_bytes),
                                 0);
                ck_assert(extent_view_is_intact(&view));
        }
        session->acked = acked;
}

void session_acknowledge(struct session *session, uint64_t acked) {
        check_unread(session, acked);
        ck_assert_int_eq(reader_acknowledge(session->reader, acked), 0);
        rig_quiet();
}

bool session_acknowledge_as_client(struct session *session, uint64_t acked) {
        uint64_t before = session->acked;

        check_unread(session, acked);
        if (before >= session->kick_at || acked < session->kick_at)
                return false;
        ck_assert_int_eq(reader_acknowledge(session->reader, acked), 0);
        rig_quiet();
        return true;
}

unsigned session_held(const struct session *session) {
        bool held[4096] = { false };
        unsigned count = 0;

        for (uint64_t i = session->acked; i < session->pushed; i++) {
                uint32_t segment = session->entries[i].entry.segment;

                if (!session->entries[i].extent || held[segment])
                        continue;
                held[segment] = true;
                count++;
        }
        return count;
}

void session_must_be_complete(const struct session *session) {
        uint64_t records = 0;

        for (unsigned i = 0; i < rig.file_count; i++) {
                ck_assert_int_eq(session->next_step[i], rig.files[i].steps);
                records += (uint64_t)rig.files[i].steps + 1;
        }
        ck_assert_uint_eq(session->records, records);
        ck_assert_uint_eq(session->lost, 0);
        ck_assert_uint_eq(session->flushed, session->pushed);
}
