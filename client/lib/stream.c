/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Order of one hr_next(): the last batch is acknowledged; entries are taken as long as there are
 * some; only where there is none is the socket looked at, and then slept on. What the daemon had
 * delivered before it went is so read before its end is reported.
 */
#include "client/lib/stream.h"

#include <errno.h>
#include <fnmatch.h>
#include <string.h>
#include <sys/mman.h>

#include "client/lib/call.h"
#include "client/lib/link.h"
#include "client/lib/payload.h"
#include "client/lib/subscribe.h"
#include "client/lib/source_names.h"

#define PUMP_EVERY 16 /* batches: notifications are read also where records never run out */

#define REASON_MS 1000 /* from the end of a session in shared memory to its reason on the socket */

/* Positive outcome of the functions below: nothing of this entry is for the caller. */
#define STREAM_E_SKIP 100

static void globs_clear(struct globs *globs) {
        for (size_t i = 0; i < globs->count; i++)
                free(globs->patterns[i]);
        free(globs->patterns);
        *globs = (struct globs){ 0 };
}

void stream_drop_payload(struct stream *stream) {
        stream->payload = inbox_item_free(stream->payload);
        if (stream->payload_memory)
                munmap((void *)(uintptr_t)stream->payload_memory, stream->payload_bytes);
        stream->payload_memory = NULL;
}

struct stream *stream_free(struct stream *stream) {
        if (!stream)
                return NULL;
        stream_drop_payload(stream);
        shared_map_close(&stream->map);
        inbox_item_free(stream->item);
        globs_clear(&stream->tags);
        globs_clear(&stream->plugins);
        globs_clear(&stream->runs);
        series_table_deinit(&stream->table);
        restarts_deinit(&stream->restarts);
        free(stream->withdrawals);
        free(stream->series);
        free(stream->known);
        free(stream);
        return NULL;
}

static int stream_fail(struct hr_connection *connection, int r, const char *problem) {
        return link_break(connection, r, "%s: %s", hr_daemon_name(connection), problem);
}

/* ---- Entries --------------------------------------------------------------------------------- */

/* Gives back what was taken, once nothing of it is left over. 0 or -errno. */
static int acknowledge(struct hr_connection *connection) {
        struct stream *stream = connection->stream;
        int r;

        stream_drop_payload(stream);
        if (stream->rest.entry.record_count > 0)
                return 0;
        stream->view.bytes = NULL;
        stream->item = inbox_item_free(stream->item);
        if (stream->transport == HR_TRANSPORT_INLINE) {
                if (stream->acked == stream->taken)
                        return 0;
                stream->acked = stream->taken;
                return call_notify(connection, "ack",
                                   json_pack("{s:I}", "position", (json_int_t)stream->acked));
        }
        if (!shared_map_acknowledge(&stream->map))
                return 0;
        r = wire_writer_wake(&connection->writer, connection->fd);
        /* A socket that broke is noticed where it is read. */
        return r == -ENOMEM ? link_fail(connection, r, "%s", strerror(-r)) : 0;
}

/* The next entry of either transport. 0, HR_AGAIN, -EPROTO. */
static int take_entry(struct hr_connection *connection, struct ring_entry *ret_entry,
                      const uint8_t **ret_extent) {
        struct stream *stream = connection->stream;
        int r;

        if (stream->transport == HR_TRANSPORT_MAP) {
                r = shared_map_next(&stream->map, ret_entry, ret_extent);
                return r < 0 ? stream_fail(connection, r, stream->map.problem) : r;
        }
        stream->item = inbox_steal_next(&connection->inbox);
        if (!stream->item)
                return HR_AGAIN;
        stream->taken++;
        *ret_entry = stream->item->entry;
        *ret_extent = stream->item->extent;
        return 0;
}

/* ---- What the filters let through ------------------------------------------------------------ */

static bool globs_match(const struct globs *globs, struct hr_text text) {
        if (globs->count == 0)
                return true;
        for (size_t i = 0; i < globs->count; i++) {
                if (fnmatch(globs->patterns[i], text.bytes, 0) == 0)
                        return true;
        }
        return false;
}

static bool is_wanted(const struct stream *stream, const struct hr_series *series) {
        return globs_match(&stream->tags, series->tag) &&
               globs_match(&stream->plugins, series->plugin);
}

/* The name below the prefix; "." for the prefix itself. False: it lies elsewhere. */
static bool strip_prefix(const char *prefix, struct extent_string name, bool is_run,
                         struct extent_string *ret_name) {
        size_t size = strlen(prefix);

        *ret_name = name;
        if (size == 0)
                return true;
        if (name.size < size || memcmp(name.bytes, prefix, size) != 0)
                return false;
        if (name.size == size && is_run) {
                *ret_name = (struct extent_string){ (const uint8_t *)".", 1 };
                return true;
        }
        if (name.size <= size + 1 || name.bytes[size] != '/')
                return false;
        *ret_name = (struct extent_string){ name.bytes + size + 1, name.size - size - 1 };
        return true;
}

/* ---- Batches --------------------------------------------------------------------------------- */

static int take_news(struct hr_connection *connection, const struct ring_entry *entry,
                     struct hr_batch *batch) {
        struct known_file *file = series_table_find_file(&connection->stream->table,
                                                         entry->file_id);

        if (entry->flags & RING_ENTRY_END) {
                connection->stream->ended = true;
                return HR_END;
        }
        if (file && entry->flags & (RING_ENTRY_REPLACED | RING_ENTRY_GONE))
                restarts_forget(&file->restarts);
        if (entry->flags & RING_ENTRY_REPLACED)
                batch->event = HR_REPLACED;
        else if (entry->flags & RING_ENTRY_GONE)
                batch->event = HR_GONE;
        else if (entry->flags & RING_ENTRY_LOST)
                batch->event = HR_LOST;
        else
                return STREAM_E_SKIP;
        batch->file = file ? &file->public : NULL;
        batch->file_version = entry->generation;
        batch->begin_offset = batch->end_offset = entry->source_offset;
        batch->lost_count = entry->lost_count;
        batch->next = (struct hr_position){ .file_id = entry->file_id,
                                            .file_version = entry->generation };
        return 0;
}

static const struct extent_record *first_record_of(const struct extent_view *view, uint32_t row) {
        for (uint32_t i = 0; i < view->record_count; i++)
                if (extent_view_record(view, i)->series == row)
                        return extent_view_record(view, i);
        return NULL;
}

/*
 * What the value says that the row is from, whose texts are too long for the extent. True if the
 * series changed. Positive *ret_r: it cannot be had.
 */
static bool learn_left_out(struct hr_connection *connection, const struct extent_view *view,
                           uint32_t row, struct known_series *series, int *ret_r) {
        const struct extent_record *record = first_record_of(view, row);
        struct hr_position position;

        *ret_r = HR_E_GONE;
        if (!record)
                return false;
        position = payload_position(view, record);
        return subscribe_fetch_series(connection, &position, series, ret_r);
}

/* Goes on with what the row says. True if the series changed. */
static bool learn_row(struct hr_connection *connection, const struct extent_view *view,
                      uint32_t row, struct known_series *series, int *ret_r) {
        struct metadata would_be = series->metadata;
        bool changed;

        if (view->series[row].flags & EXTENT_SERIES_LEFT_OUT &&
            metadata_update(&would_be, view, &view->series[row])) {
                changed = learn_left_out(connection, view, row, series, ret_r);
                /* The records are of use without the texts. */
                if (*ret_r <= 0 && *ret_r != -EBUSY)
                        return changed;
        }
        return series_table_learn(series, view, &view->series[row], ret_r);
}

static int learn_series(struct hr_connection *connection, const struct extent_view *view,
                        struct extent_string run, uint32_t index) {
        struct stream *stream = connection->stream;
        const struct extent_series *entry = &view->series[index];
        struct known_series *series;
        bool added, changed, is_behind;
        int r;

        r = series_table_add(&stream->table, view->header->source_id, entry->series_id, run,
                             extent_view_tag(view, entry), &series, &added);
        if (r < 0)
                return r;
        /* Where the stream began behind the start, the daemon knows more. */
        is_behind = stream->asks_series && !series->metadata.is_given &&
                    !(entry->flags & EXTENT_SERIES_METADATA);
        if (!series->was_asked && is_behind) {
                if ((r = subscribe_ask_series(connection, series)) < 0)
                        return r;
                changed = true;
        } else {
                changed = learn_row(connection, view, index, series, &r);
                if (r < 0)
                        return r;
        }
        if (added || changed)
                series->is_wanted = is_wanted(stream, &series->public);
        stream->known[index] = series;
        stream->series[index] = series->is_wanted ? &series->public : NULL;
        return 0;
}

static int reserve_series(struct stream *stream, uint32_t count) {
        struct hr_series **series;
        struct known_series **known;

        if (count <= stream->series_space)
                return 0;
        series = reallocarray(stream->series, count, sizeof(*series));
        if (series)
                stream->series = series;
        known = reallocarray(stream->known, count, sizeof(*known));
        if (known)
                stream->known = known;
        if (!series || !known)
                return -ENOMEM;
        stream->series_space = count;
        return 0;
}

/* Every series word must lead into the table, and only marks have none: nobody looks again. */
static bool has_wrong_series(const struct extent_view *view, uint32_t first, uint32_t count) {
        bool wrong = false;

        for (uint32_t i = 0; i < count; i++) {
                const struct extent_record *record = extent_view_record(view, first + i);

                wrong |= record->series >= view->series_count &&
                         (record->series != EXTENT_SERIES_NONE || record->kind != EXTENT_KIND_MARK);
        }
        return wrong;
}

/* Where a stream goes on behind the records [first, +count) of the extent. */
static struct hr_position position_behind(const struct extent_view *view, uint32_t first,
                                          uint32_t count) {
        const struct extent_header *header = view->header;
        struct hr_position position = { .file_id = header->file_id,
                                        .file_version = header->file_version };

        if (first + count < view->record_count) {
                const struct extent_record *record = extent_view_record(view, first + count);

                position.offset = record->source_offset;
                position.index = record->value_index;
        } else if (header->end_index && view->record_count) {
                position.offset = extent_view_record(view, view->record_count - 1)->source_offset;
                position.index = header->end_index;
        } else {
                position.offset = header->end_offset;
        }
        return position;
}

static uint32_t batch_flags(const struct ring_entry *entry) {
        return (entry->flags & RING_ENTRY_REPLAY ? HR_BATCH_REPLAY : 0) |
               (entry->flags & RING_ENTRY_LATE ? HR_BATCH_LATE : 0) |
               (entry->flags & RING_ENTRY_DAMAGED ? HR_BATCH_DAMAGED : 0);
}

/* The next record_count records of the rest. Damage is told once, with the last ones. */
static void fill_batch(struct stream *stream, uint32_t record_count, struct hr_batch *batch) {
        const struct extent_view *view = &stream->view;
        const struct extent_header *header = view->header;
        const struct ring_entry *entry = &stream->rest.entry;

        batch->event = HR_RECORDS;
        batch->flags = batch_flags(entry);
        batch->file = &stream->rest.file->public;
        batch->file_id = entry->file_id;
        batch->file_version = header->file_version;
        batch->begin_offset = header->begin_offset;
        batch->end_offset = header->end_offset;
        batch->skipped_count = record_count == entry->record_count ? header->skipped_count : 0;
        batch->record_count = record_count;
        batch->min_wall_time = header->min_wall_time;
        batch->next = position_behind(view, entry->first_record, record_count);
        batch->at_ = (const struct hr_record *)view->records + entry->first_record;
        batch->end_ = batch->at_ + record_count;
        batch->series_ = stream->series;
        batch->extent_ = view->bytes;
        batch->marks_ = stream->tags.count == 0 && stream->plugins.count == 0;
}

/* As the caller knows them, without those of series that the filters hold back. -ENOMEM. */
static int fill_withdrawals(struct stream *stream, struct hr_batch *batch) {
        const struct restarts *restarts = &stream->restarts;
        struct hr_withdrawal *withdrawals = stream->withdrawals;
        size_t count = 0;

        if (restarts->count > stream->withdrawal_space) {
                withdrawals = reallocarray(withdrawals, restarts->space, sizeof(*withdrawals));
                if (!withdrawals)
                        return -ENOMEM;
                stream->withdrawals = withdrawals;
                stream->withdrawal_space = restarts->space;
        }
        for (size_t i = 0; i < restarts->count; i++) {
                const struct restarts_withdrawal *found = &restarts->withdrawals[i];
                struct known_series *series = known_series_of(found->series);
                struct known_file *file = known_file_of(found->file);

                if (series && !series->is_wanted)
                        continue;
                withdrawals[count++] = (struct hr_withdrawal){ .record = batch->at_ + found->index,
                                                               .series = series ? &series->public
                                                                                : NULL,
                                                               .file = file ? &file->public : NULL,
                                                               .from_step = found->from_step };
        }
        batch->withdrawal_ = withdrawals;
        batch->withdrawal_end_ = withdrawals + count;
        return 0;
}

/*
 * Looks at every record of the batch, whatever the filters say: restarts are a matter of the whole
 * run.
 */
static int find_restarts(struct stream *stream, struct hr_batch *batch) {
        struct known_file *file = stream->rest.file;
        struct restarts *restarts = &stream->restarts;
        int r = 0;

        restarts->count = 0;
        for (uint32_t i = 0; i < batch->record_count && r == 0; i++) {
                const struct extent_record *record = (const struct extent_record *)batch->at_ + i;
                struct known_series *series = record->series != EXTENT_SERIES_NONE
                                                      ? stream->known[record->series]
                                                      : NULL;

                r = restarts_tell(restarts, series ? &series->restarts : NULL, &file->restarts,
                                  record, i);
        }
        return r < 0 || restarts->count == 0 ? r : fill_withdrawals(stream, batch);
}

/*
 * The first record of the rest that uses this row or one behind it: rows stand in the order of
 * their first use.
 */
static uint32_t first_use(struct stream *stream, uint32_t row) {
        struct stream_rest *rest = &stream->rest;
        uint32_t end = rest->entry.first_record + rest->entry.record_count;

        while (rest->looked_at < end) {
                uint32_t series = extent_view_record(&stream->view, rest->looked_at)->series;

                if (series >= row && series != EXTENT_SERIES_NONE)
                        break;
                rest->looked_at++;
        }
        return rest->looked_at;
}

/*
 * Learns series up to where one says more of itself behind the first record that is left. How many
 * records come before that.
 */
static int learn_rows(struct hr_connection *connection, uint32_t *ret_record_count) {
        struct stream *stream = connection->stream;
        struct stream_rest *rest = &stream->rest;
        const struct hr_text *run = &rest->file->public.run;
        struct extent_string run_name = { (const uint8_t *)run->bytes, run->size };

        for (; rest->learned < stream->view.series_count; rest->learned++) {
                uint32_t row = rest->learned;
                int r;

                if (stream->view.series[row].flags & EXTENT_SERIES_AGAIN &&
                    first_use(stream, row) > rest->entry.first_record) {
                        *ret_record_count = rest->looked_at - rest->entry.first_record;
                        return 0;
                }
                r = learn_series(connection, &stream->view, run_name, row);
                if (r)
                        return r;
        }
        *ret_record_count = rest->entry.record_count;
        return 0;
}

/* Records of the entry that was taken, as far as no series changes. */
static int take_rest(struct hr_connection *connection, struct hr_batch *batch) {
        struct stream *stream = connection->stream;
        struct ring_entry *entry = &stream->rest.entry;
        uint32_t record_count;
        int r = learn_rows(connection, &record_count);

        if (r == 0) {
                fill_batch(stream, record_count, batch);
                if (stream->restarts.rule != RESTARTS_NONE)
                        r = find_restarts(stream, batch);
        }
        if (r) {
                entry->record_count = 0;
                return r == -ENOMEM ? link_fail(connection, r, "%s", strerror(ENOMEM)) : r;
        }
        entry->first_record += record_count;
        entry->record_count -= record_count;
        return 0;
}

/* Where sources have names, which the daemon does not see in its filters. */
static bool is_wanted_run(const struct stream *stream, struct extent_string run) {
        char name[4097];

        if (stream->runs.count == 0)
                return true;
        snprintf(name, sizeof(name), "%.*s", (int)run.size, (const char *)run.bytes);
        return globs_match(&stream->runs, (struct hr_text){ name, run.size });
}

static int take_records(struct hr_connection *connection, const struct ring_entry *entry,
                        const uint8_t *extent, struct hr_batch *batch) {
        struct stream *stream = connection->stream;
        struct extent_view *view = &stream->view;
        CLEANUP(freep) char *run_memory = NULL, *path_memory = NULL;
        uint64_t source_id;
        struct extent_string run, path;
        struct known_file *file;
        int r;

        if (extent_view_init(view, extent, entry->size_bytes) < 0)
                return stream_fail(connection, -EPROTO, "an entry leads to no extent");
        if (entry->first_record > view->record_count ||
            entry->record_count > view->record_count - entry->first_record)
                return stream_fail(connection, -EPROTO,
                                   "an entry has more records than its extent");
        if (view->header->file_id != entry->file_id)
                return stream_fail(connection, -EPROTO,
                                   "an entry and its extent are of different files");
        if (has_wrong_series(view, entry->first_record, entry->record_count))
                return stream_fail(connection, -EPROTO, "a record has a series that is not there");
        if (stream->has_source && view->header->source_id != stream->source_id)
                return STREAM_E_SKIP;
        if (!strip_prefix(hr_prefix(connection), extent_view_run_name(view), true, &run) ||
            !strip_prefix(hr_prefix(connection), extent_view_file_path(view), false, &path))
                return STREAM_E_SKIP;
        source_id = view->header->source_id;
        r = source_names_join(connection->names, source_id, true, &run, &run_memory);
        if (r == 0)
                r = source_names_join(connection->names, source_id, false, &path, &path_memory);
        if (r == 0 && !is_wanted_run(stream, run))
                return STREAM_E_SKIP;
        if (r == 0)
                r = series_table_add_file(&stream->table, view->header,
                                          subscribe_source_url(connection, source_id), run, path,
                                          &file);
        if (r == 0)
                r = reserve_series(stream, view->series_count);
        if (r < 0)
                return r == -ENOMEM ? link_fail(connection, r, "%s", strerror(ENOMEM)) : r;
        stream->rest = (struct stream_rest){ .entry = *entry,
                                             .file = file,
                                             .looked_at = entry->first_record };
        return take_rest(connection, batch);
}

/* What the current entry left over, or the next entry. */
static int take_batch(struct hr_connection *connection, struct hr_batch *ret_batch) {
        struct hr_batch batch = { 0 };
        struct ring_entry entry;
        const uint8_t *extent;
        int r;

        if (connection->stream->rest.entry.record_count > 0) {
                r = take_rest(connection, &batch);
        } else if ((r = take_entry(connection, &entry, &extent)) == 0) {
                batch.file_id = entry.file_id;
                batch.flags = batch_flags(&entry);
                r = extent ? take_records(connection, &entry, extent, &batch)
                           : take_news(connection, &entry, &batch);
        }
        if (r == 0)
                *ret_batch = batch;
        return r;
}

/* ---- Waiting --------------------------------------------------------------------------------- */

/* The queue is empty and the socket gave r: what is that for the caller? */
static int report_end(struct hr_connection *connection, int r) {
        if (connection->refusal_message)
                return link_fail(connection, call_outcome(connection->refusal_code), "%s",
                                 connection->refusal_message);
        return r;
}

/* The daemon has ended the session; its reason follows on the socket. 0: look again. */
static int wait_for_reason(struct hr_connection *connection) {
        int r = link_wait(connection, link_deadline(REASON_MS));

        return r == HR_AGAIN ? link_break(connection, -ECONNRESET, "%s: ended the session",
                                          hr_daemon_name(connection))
                             : r;
}

/*
 * Nothing is there: hears what the socket has to say, and sleeps where it has nothing. 0: look
 * again.
 */
static int wait_for_entries(struct hr_connection *connection, int64_t deadline_ms) {
        struct stream *stream = connection->stream;
        bool is_map = stream->transport == HR_TRANSPORT_MAP;
        int r;

        if (is_map && !shared_map_sleep(&stream->map))
                return 0;
        r = link_pump(connection);
        if (r != HR_AGAIN || (r = report_end(connection, 0)))
                return r;
        return is_map && shared_map_is_closed(&stream->map) ? wait_for_reason(connection)
                                                            : link_wait(connection, deadline_ms);
}

static void pump_now_and_then(struct hr_connection *connection) {
        if (connection->on_notification && ++connection->stream->since_pump >= PUMP_EVERY) {
                connection->stream->since_pump = 0;
                link_pump(connection);
        }
}

int hr_next(struct hr_connection *connection, int timeout_ms, struct hr_batch *ret_batch) {
        struct stream *stream = connection->stream;
        int64_t deadline_ms = link_deadline(timeout_ms);
        bool is_last_look = false;
        int r, lost = 0;

        if (!stream)
                return link_fail(connection, -EINVAL, "there is no subscription");
        if (stream->ended)
                return HR_END;
        if (connection->broken == -EPROTO)
                return connection->broken;
        pump_now_and_then(connection);
        for (;;) {
                if ((r = acknowledge(connection)) < 0)
                        return r;
                r = take_batch(connection, ret_batch);
                if (r == STREAM_E_SKIP)
                        continue;
                if (r != HR_AGAIN) {
                        if (stream->transport == HR_TRANSPORT_MAP)
                                shared_map_awake(&stream->map);
                        if (r == HR_END)
                                acknowledge(connection);
                        return r;
                }
                /*
                 * The socket's end may have overtaken entries: one more look before it is reported.
                 */
                if (is_last_look)
                        return report_end(connection, lost);
                r = wait_for_entries(connection, deadline_ms);
                if (r < 0 || r > HR_AGAIN) {
                        lost = r;
                        is_last_look = true;
                } else if (r == HR_AGAIN) {
                        return r;
                }
        }
}
