/* SPDX-License-Identifier: Apache-2.0 */
#include "client/cli/held_run.h"

#include <errno.h>

#include "common/base.h"

/* Where the name of a run lies is its identity; the low bits are those of any memory. */
static uint64_t run_id(struct hr_text name) {
        return (uint64_t)(uintptr_t)name.bytes >> 4;
}

static void written_free(struct id_node *node) {
        free(node);
}

static int keep_chunk(void *userdata, const char *bytes, size_t size) {
        struct held_run *held = userdata;
        struct held_chunk *chunk = &held->chunk;
        int r;

        chunk->size = size;
        r = spool_append(&held->spool, chunk, sizeof(*chunk));
        chunk->series = NULL;
        return r < 0 ? r : spool_append(&held->spool, bytes, size);
}

int held_run_init(struct held_run *held, struct sink *out, size_t memory_bytes) {
        *held = (struct held_run){ .out = out };
        spool_init(&held->spool, memory_bytes);
        id_table_init(&held->written);
        return sink_init_function(&held->lines, keep_chunk, held);
}

void held_run_deinit(struct held_run *held) {
        sink_deinit(&held->lines);
        spool_deinit(&held->spool);
        held->withdrawn = hr_withdrawn_free(held->withdrawn);
        id_table_deinit(&held->written, written_free);
}

bool held_run_is(const struct held_run *held, const struct hr_file *file) {
        return held->name.bytes == file->run.bytes;
}

int held_run_begin(struct held_run *held, const struct hr_file *file) {
        held->withdrawn = hr_withdrawn_new();
        held->name = file->run;
        held->is_again = id_table_find(&held->written, run_id(held->name));
        return held->withdrawn ? 0 : -ENOMEM;
}

void held_run_begin_line(struct held_run *held, const struct hr_series *series,
                         const struct hr_file *file, int64_t step) {
        held->chunk = (struct held_chunk){ .series = series,
                                           .file = file,
                                           .step = step,
                                           .told_at = hr_withdrawn_count(held->withdrawn) };
}

int held_run_end_line(struct held_run *held) {
        return sink_flush(&held->lines);
}

int held_run_withdraw(struct held_run *held, const struct hr_series *series,
                      const struct hr_file *file, int64_t from_step) {
        return hr_withdrawn_add(held->withdrawn, series, file, from_step);
}

static int write_chunk(struct held_run *held, const struct held_chunk *chunk) {
        char *out = sink_reserve(held->out, chunk->size);
        int r = out ? spool_read(&held->spool, out, chunk->size) : -ENOMEM;

        if (r == 0)
                sink_commit(held->out, out + chunk->size);
        return r;
}

static int write_survivors(struct held_run *held) {
        struct held_chunk chunk;
        bool stands = false;
        int r = spool_rewind(&held->spool);

        while (r == 0 && !held->out->error && !spool_is_at_end(&held->spool)) {
                r = spool_read(&held->spool, &chunk, sizeof(chunk));
                if (r == 0 && chunk.series) {
                        stands = !hr_withdrawn_has(held->withdrawn, chunk.series, chunk.file,
                                                   chunk.step, chunk.told_at);
                        held->left_out += !stands;
                }
                if (r == 0)
                        r = stands ? write_chunk(held, &chunk)
                                   : spool_skip(&held->spool, chunk.size);
        }
        return r;
}

static int note_written(struct held_run *held) {
        struct id_node *run;
        int r;

        if (held->is_again)
                return 0;
        run = calloc(1, sizeof(*run));
        if (!run)
                return -ENOMEM;
        run->id = run_id(held->name);
        r = id_table_add(&held->written, run);
        if (r < 0)
                free(run);
        return r;
}

int held_run_release(struct held_run *held) {
        int r = 0, clear_error;

        if (held->name.bytes) {
                r = write_survivors(held);
                if (r == 0)
                        r = note_written(held);
        }
        clear_error = spool_clear(&held->spool);

        held->withdrawn = hr_withdrawn_free(held->withdrawn);
        held->name = (struct hr_text){ 0 };
        return r < 0 ? r : clear_error;
}
