/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/serve/catalog_json.h"

#include <errno.h>
#include <string.h>
#include <time.h>
#include <uv.h>

#include "common/base.h"
#include "daemon/serve/name.h"
#include "daemon/serve/requests_json.h"

#define UNREADABLE_MOST 100u /* directories named of one source */

/* Takes the object and gives it back if all that was put into it is there. */
static json_t *complete(json_t *take_object, int failed) {
        if (!failed)
                return take_object;
        json_decref(take_object);
        return NULL;
}

static int set_name(json_t *object, const char *key, const struct catalog_name *name) {
        return name_set(object, key, name->bytes, name->size);
}

json_t *catalog_json_number(uint64_t number) {
        return json_integer((json_int_t)min_u64(number, INT64_MAX));
}

static int set_number(json_t *object, const char *key, uint64_t number) {
        return json_object_set_new(object, key, catalog_json_number(number));
}

static json_t *seconds(int64_t time_ns) {
        return time_ns == INT64_MIN ? json_null() : json_real((double)time_ns / 1e9);
}

/* What the listing did not say is at least what was loaded. */
static uint64_t file_size(const struct catalog_file *file) {
        return file->listed_bytes == UINT64_MAX ? file->loaded_bytes : file->listed_bytes;
}

bool catalog_json_is_failed(const struct catalog_file *file) {
        return file->settled && (file->state == CATALOG_UNREADABLE ||
                                 file->state == CATALOG_ARCHIVED || file->failure);
}

json_t *catalog_json_failure(const struct store_failure *failure) {
        json_t *object = json_object();

        return complete(object, name_set(object, "code", failure->code, strlen(failure->code)) ||
                                        name_set(object, "message", failure->message,
                                                 strlen(failure->message)));
}

static void add_run(struct catalog_totals *totals, const struct catalog_run *run) {
        for (size_t i = 0; i < run->file_count; i++) {
                const struct catalog_file *file = run->files[i];

                if (file->excluded)
                        continue;
                totals->size_bytes += file_size(file);
                totals->loaded_bytes += file->loaded_bytes;
                totals->records += file->records;
                totals->damaged += file_damage_count(file->damage);
                for (unsigned k = 0; file->damage && k < DAMAGE_COUNT; k++)
                        totals->damaged_by[k] += file_damage_by_reason(file->damage, k);
                if (file->state == CATALOG_ARCHIVED)
                        totals->archived++;
                else
                        totals->failed += catalog_json_is_failed(file);
        }
}

struct catalog_totals catalog_json_totals(const struct catalog_source *source) {
        struct catalog_totals totals = { 0 };

        for (size_t i = 0; i < source->run_count; i++) {
                add_run(&totals, source->runs[i]);
                totals.runs += !catalog_run_is_excluded(source->runs[i]);
        }
        totals.files = source->file_count - source->excluded_count;
        totals.settled = source->settled_count - source->excluded_count;
        return totals;
}

static json_t *reasons(const uint64_t count[DAMAGE_COUNT]) {
        json_t *object = json_object();

        for (unsigned i = 0; i < DAMAGE_COUNT; i++) {
                if (count[i] && set_number(object, damage_name(i), count[i]))
                        return complete(object, -1);
        }
        return object;
}

static int set_totals(json_t *object, const struct catalog_totals *totals) {
        return set_number(object, "size_bytes", totals->size_bytes) ||
               set_number(object, "loaded_bytes", totals->loaded_bytes) ||
               set_number(object, "records", totals->records) ||
               set_number(object, "damaged", totals->damaged) ||
               json_object_set_new(object, "reasons", reasons(totals->damaged_by));
}

static const char *source_state_name(enum catalog_source_state state) {
        static const char *const names[] = {
                [CATALOG_SOURCE_LOADING] = "loading",
                [CATALOG_SOURCE_OK] = "ok",
                [CATALOG_SOURCE_FAILING] = "failing",
        };

        return names[state];
}

static int set_source_facts(json_t *object, const struct catalog_source *source) {
        json_t *age = source->listings
                              ? json_real((double)(uv_hrtime() - source->listed_at_ns) / 1e9)
                              : json_null();

        return name_set(object, "name", source->name, strlen(source->name)) ||
               name_set(object, "url", source->store->url, strlen(source->store->url)) ||
               json_object_set_new(object, "state",
                                   json_string(source_state_name(source->state))) ||
               json_object_set_new(object, "listed_age_s", age);
}

/* Directories that the last listing could not read. */
static json_t *unreadable(const struct catalog_source *source) {
        json_t *list = json_array();

        for (size_t i = 0; i < source->unreadable_count && i < UNREADABLE_MOST; i++) {
                const struct catalog_unreadable *place = &source->unreadable[i];
                json_t *row = catalog_json_failure(&place->failure);

                json_array_append_new(list,
                                      complete(row, set_name(row, "path", &place->directory)));
        }
        return list;
}

/* What a source is on that is no disk of this machine. */
static json_t *mount(const struct mount *mount) {
        json_t *object = json_object();
        int failed = name_set(object, "type", mount->type, strlen(mount->type));

        if (!failed && mount->max_background)
                failed = set_number(object, "max_background", mount->max_background);
        if (!failed && mount->native[0])
                failed = name_set(object, "native", mount->native, strlen(mount->native));
        return complete(object, failed);
}

json_t *catalog_json_source(const struct catalog_source *source) {
        struct catalog_totals totals = catalog_json_totals(source);
        json_t *object = json_object();
        int failed = set_source_facts(object, source) || set_totals(object, &totals) ||
                     set_number(object, "runs", totals.runs) ||
                     set_number(object, "files", totals.files) ||
                     set_number(object, "settled", totals.settled) ||
                     set_number(object, "excluded", source->excluded_count) ||
                     set_number(object, "failed", totals.failed) ||
                     set_number(object, "archived", totals.archived) ||
                     json_object_set_new(object, "unreadable", unreadable(source)) ||
                     json_object_set_new(object, "requests", requests_json(source, time(NULL)));

        if (!failed && source->watch)
                failed = json_object_set_new(object, "polling", requests_json_polling(source));
        if (!failed && source->store->mount.type[0] && !source->store->mount.is_local)
                failed = json_object_set_new(object, "mount", mount(&source->store->mount));
        if (!failed && source->store->identity)
                failed = name_set(object, "identity", source->store->identity,
                                  strlen(source->store->identity));
        if (!failed && source->failure.class != STORE_OK)
                failed = json_object_set_new(object, "error",
                                             catalog_json_failure(&source->failure));
        return complete(object, failed);
}

json_t *catalog_json_progress(const struct catalog_source *source) {
        struct catalog_totals totals = catalog_json_totals(source);
        json_t *object = json_object();

        return complete(object, name_set(object, "source", source->name, strlen(source->name)) ||
                                        set_number(object, "files", totals.files) ||
                                        set_number(object, "settled", totals.settled) ||
                                        set_totals(object, &totals) ||
                                        json_object_set_new(object, "requests",
                                                            requests_json(source, time(NULL))));
}

/* "unreadable" stands with the code of the failure, "excluded" with the filter. */
static json_t *file_state(const struct catalog_file *file) {
        const char *name = catalog_state_name(file->state), *reason = NULL;
        json_t *text;

        if (file->state == CATALOG_UNREADABLE && file->failure)
                reason = file->failure->code;
        else if (file->state == CATALOG_EXCLUDED)
                reason = file->excluded;
        text = reason ? json_sprintf("%s: %s", name, reason) : NULL;
        return text ? text : json_string(name); /* a glob may be no UTF-8 */
}

/* That of a file which is in the same state. */
static json_t *run_state(const struct catalog_run *run) {
        enum catalog_state state = catalog_run_state(run);

        for (size_t i = 0; i < run->file_count; i++) {
                if (run->files[i]->state == state)
                        return file_state(run->files[i]);
        }
        return json_string(catalog_state_name(state));
}

static int set_run_name(json_t *object, const struct catalog_run *run) {
        return name_set(object, "source", run->source->name, strlen(run->source->name)) ||
               set_name(object, "run", &run->name);
}

json_t *catalog_json_run(const struct catalog_run *run) {
        json_t *object = json_object();
        struct catalog_totals totals = { 0 };
        int64_t changed = INT64_MIN;
        json_t *last_step = run->has_last_step ? json_integer(run->last_step) : json_null();

        add_run(&totals, run);
        for (size_t i = 0; i < run->file_count; i++) {
                if (run->files[i]->mtime_ns > changed)
                        changed = run->files[i]->mtime_ns;
        }
        return complete(object, set_run_name(object, run) ||
                                        json_object_set_new(object, "id", name_id(run->id)) ||
                                        json_object_set_new(object, "state", run_state(run)) ||
                                        set_number(object, "files",
                                                   run->file_count - run->excluded_count) ||
                                        set_number(object, "excluded", run->excluded_count) ||
                                        set_totals(object, &totals) ||
                                        json_object_set_new(object, "last_step", last_step) ||
                                        json_object_set_new(object, "changed", seconds(changed)));
}

int catalog_json_set_damage(json_t *object, const struct file_damage *damage) {
        uint64_t by_reason[DAMAGE_COUNT];

        for (unsigned i = 0; i < DAMAGE_COUNT; i++)
                by_reason[i] = file_damage_by_reason(damage, i);
        return set_number(object, "damaged", file_damage_count(damage)) ||
               json_object_set_new(object, "reasons", reasons(by_reason));
}

json_t *catalog_json_place(const struct damaged_place *place) {
        json_t *object = json_pack("{s:o, s:o, s:s}", "offset", catalog_json_number(place->offset),
                                   "bytes", catalog_json_number(place->size_bytes), "reason",
                                   damage_name(place->reason));

        if (object && place->ring_bytes && place->ring_bytes != UINT64_MAX)
                json_object_set_new(object, "ring_bytes", catalog_json_number(place->ring_bytes));
        return object;
}

/* The first places, and what the file ends with. */
static json_t *damage(const struct catalog_file *file) {
        json_t *list = json_array();

        for (size_t i = 0; file->damage && i < file->damage->named_count; i++)
                json_array_append_new(list, catalog_json_place(&file->damage->named[i]));
        if (file->damage && file->damage->tail.reason)
                json_array_append_new(list, catalog_json_place(&file->damage->tail));
        return list;
}

json_t *catalog_json_file(const struct catalog_file *file) {
        json_t *object = json_object();
        int failed = set_run_name(object, file->run) || set_name(object, "path", &file->path) ||
                     json_object_set_new(object, "id", name_id(file->id)) ||
                     json_object_set_new(object, "version", name_id(file->version)) ||
                     json_object_set_new(object, "state", file_state(file)) ||
                     set_number(object, "size_bytes", file_size(file)) ||
                     set_number(object, "loaded_bytes", file->loaded_bytes) ||
                     set_number(object, "records", file->records) ||
                     catalog_json_set_damage(object, file->damage) ||
                     json_object_set_new(object, "damage", damage(file)) ||
                     json_object_set_new(object, "changed", seconds(file->mtime_ns));

        if (!failed && file->failure)
                failed = json_object_set_new(object, "error", catalog_json_failure(file->failure));
        return complete(object, failed);
}

/* Where the value is that says what was too long for its extent. */
static int set_left_out(json_t *object, const struct catalog_series *series) {
        const struct catalog_file *file = catalog_find_file(series->run->source->catalog,
                                                            series->from_file);

        if (!series->is_left_out || !file)
                return 0;
        return json_object_set_new(object, "left_out",
                                   json_pack("{s:o, s:o, s:o, s:I}", "file", name_id(file->id),
                                             "file_version", name_id(file->version), "offset",
                                             catalog_json_number(series->left_out_offset), "index",
                                             (json_int_t)series->left_out_index));
}

json_t *catalog_json_series(const struct catalog_series *series) {
        json_t *object = json_object();

        return complete(object, set_left_out(object, series) || set_run_name(object, series->run) ||
                                        set_name(object, "tag", &series->tag) ||
                                        json_object_set_new(object, "id", name_id(series->id)) ||
                                        set_name(object, "plugin", &series->plugin) ||
                                        json_object_set_new(object, "content",
                                                            name_hex(series->content.bytes,
                                                                     series->content.size)) ||
                                        set_name(object, "display_name", &series->display_name) ||
                                        set_name(object, "description", &series->description) ||
                                        set_number(object, "class", series->data_class) ||
                                        set_number(object, "extents", series->extents));
}
