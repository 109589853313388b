/* SPDX-License-Identifier: Apache-2.0 */
#include "client/cli/held_run.h"

#include <errno.h>

#include "common/base.h"

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
        return sink_init_function(&held->lines, keep_chunk, held);
}

void held_run_deinit(struct held_run *held) {
        sink_deinit(&held->lines);
        spool_deinit(&held->spool);
        held->withdrawn = hr_withdrawn_free(held->withdrawn);
}

bool held_run_is(const struct held_run *held, const struct hr_file *file) {
        return held->name.bytes == file->run.bytes;
}

int held_run_begin(struct held_run *held, const struct hr_file *file) {
        held->withdrawn = hr_withdrawn_new();
        held->name = file->run;
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

int held_run_release(struct held_run *held) {
        int r = held->name.bytes ? write_survivors(held) : 0;
        int clear_error = spool_clear(&held->spool);

        held->withdrawn = hr_withdrawn_free(held->withdrawn);
        held->name = (struct hr_text){ 0 };
        return r < 0 ? r : clear_error;
}
