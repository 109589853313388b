/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One record of a stream as one line of text: a JSON object, or CSV. What a record is shown as
 * follows the class of its series; where its value does not fit that class, or none is known, it is
 * shown as what it is.
 */
#pragma once

#include <stdbool.h>

#include "client/cli/sink.h"
#include "client/include/headrace.h"

enum payload_mode {
        PAYLOAD_SHA256,
        PAYLOAD_FULL,
        PAYLOAD_NONE,
};

struct record_writer {
        struct hr_connection *connection;
        struct sink *sink;
        enum payload_mode mode;
        struct prepared *prepared; /* texts that are kept with files and series (their userdata) */
};

/* Frees the kept texts; the stream must not be written on after it. */
void record_text_deinit(struct record_writer *writer);

/*
 * Writes the record's JSON line; nothing for a mark. 0; HR_E_*, -errno where its payload cannot be
 * had, and then nothing is written. Write errors are the sink's.
 */
int record_text_json(struct record_writer *writer, struct hr_batch *batch,
                     const struct hr_record *record);

/*
 * Writes a JSON line that withdraws points: those told before of that run and, where they are
 * given, of that file and series (not NULL) and of that step or more (from_step not NULL). Write
 * errors are the sink's.
 */
void record_text_withdrawal(struct sink *sink, const char *reason, struct hr_text run,
                            const struct hr_file *file, const struct hr_series *series,
                            const int64_t *from_step);

/* The header of the CSV, and a line of it: nothing for what is no scalar. Results as above. */
void record_text_csv_header(struct sink *sink);
int record_text_csv(struct record_writer *writer, struct hr_batch *batch,
                    const struct hr_record *record);
