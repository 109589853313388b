/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The texts of a file and of a series are the same in every line, so they are made once and kept
 * with them (userdata); a line is then two copies and a few numbers.
 */
#include "client/cli/record_text.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>

#include "client/cli/json_line.h"
#include "client/cli/payload_text.h"
#include "client/cli/record_shape.h"
#include "common/base.h"

/* Pieces of a line that do not change with the record. */
struct prepared {
        struct prepared *next;
        char *text;
        size_t size;
        uint32_t revision;
};

void record_text_deinit(struct record_writer *writer) {
        for (struct prepared *prepared = writer->prepared, *next; prepared; prepared = next) {
                next = prepared->next;
                free(prepared->text);
                free(prepared);
        }
        writer->prepared = NULL;
}

/* "key":"name", and "key_hex" where that does not say it exactly. */
static char *put_name(char *out, const char *key, struct hr_text name) {
        char hex_key[32];

        out = json_line_string(json_line_key(out, key), name.bytes, name.size);
        if (json_line_is_utf8(name.bytes, name.size))
                return out;
        snprintf(hex_key, sizeof(hex_key), "%s_hex", key);
        return json_line_hex(json_line_key(out, hex_key), name.bytes, name.size);
}

static size_t name_most(struct hr_text name) {
        return 2 * json_line_string_most(name.size) + 64;
}

/*
 * Makes room for a text of that size: the first one, or one that replaces it. NULL: out of memory.
 */
static struct prepared *prepared_new(struct record_writer *writer, void **userdata, size_t size,
                                     uint32_t revision) {
        struct prepared *prepared = *userdata;

        if (!prepared) {
                prepared = calloc(1, sizeof(*prepared));
                if (!prepared)
                        return NULL;
                prepared->next = writer->prepared;
                writer->prepared = prepared;
                *userdata = prepared;
        }
        free(prepared->text);
        prepared->text = malloc(size);
        prepared->size = 0;
        prepared->revision = revision;
        return prepared->text ? prepared : NULL;
}

/* {"file":...,"run":... */
static const struct prepared *file_json(struct record_writer *writer, struct hr_file *file) {
        struct prepared *prepared = file->userdata;
        char *out;

        if (prepared)
                return prepared;
        prepared = prepared_new(writer, &file->userdata,
                                name_most(file->path) + name_most(file->run), 0);
        if (!prepared)
                return NULL;
        out = put_name(put_name(prepared->text, "file", file->path), "run", file->run);
        prepared->text[0] = '{';
        prepared->size = (size_t)(out - prepared->text);
        return prepared;
}

/* ,"tag":...,"plugin":... */
static const struct prepared *series_json(struct record_writer *writer, struct hr_series *series) {
        struct prepared *prepared = series->userdata;
        char *out;

        if (prepared && prepared->revision == series->revision)
                return prepared;
        prepared = prepared_new(writer, &series->userdata,
                                name_most(series->tag) + name_most(series->plugin),
                                series->revision);
        if (!prepared)
                return NULL;
        out = put_name(put_name(prepared->text, "tag", series->tag), "plugin", series->plugin);
        prepared->size = (size_t)(out - prepared->text);
        return prepared;
}

static char *put_prepared(char *out, const struct prepared *prepared) {
        memcpy(out, prepared->text, prepared->size);
        return out + prepared->size;
}

#define LINE_MOST 512 /* of the numbers and keys of a line */

/* Everything up to the value. NULL: out of memory. */
static char *put_head(struct record_writer *writer, struct hr_batch *batch,
                      const struct hr_record *record, const char *kind) {
        const struct prepared *file = file_json(writer, batch->file);
        const struct prepared *series = series_json(writer, hr_record_series(batch, record));
        char *out;

        if (!file || !series ||
            !(out = sink_reserve(writer->sink, file->size + series->size + LINE_MOST)))
                return NULL;
        out = put_prepared(out, file);
        out = json_line_unsigned(json_line_key(out, "offset"), record->source_offset);
        out = json_line_unsigned(json_line_key(out, "index"), record->value_index);
        out = stpcpy(json_line_key(out, "kind"), kind);
        out = json_line_signed(json_line_key(out, "step"), record->step);
        out = json_line_double(json_line_key(out, "wall_time"), record->wall_time);
        return put_prepared(out, series);
}

static int write_scalar(struct record_writer *writer, struct hr_batch *batch,
                        const struct hr_record *record, const struct record_shape *shape) {
        char *out = put_head(writer, batch, record, "\"scalar\"");

        if (!out)
                return -ENOMEM;
        out = json_line_double(json_line_key(out, "value"), record->value);
        if (record_shape_needs_bits(record))
                out = json_line_hex(json_line_key(out, "bits"), shape->bits, shape->bits_size);
        memcpy(out, "}\n", 2);
        sink_commit(writer->sink, out + 2);
        return 0;
}

static int write_payload(struct record_writer *writer, struct hr_batch *batch,
                         const struct hr_record *record, const struct record_shape *shape) {
        char *out = put_head(writer, batch, record,
                             shape->kind == HR_KIND_BLOBS ? "\"blobs\"" : "\"tensor\"");

        if (!out)
                return -ENOMEM;
        sink_commit(writer->sink, out);
        if (shape->kind == HR_KIND_BLOBS)
                payload_text_blobs(writer->sink, shape, writer->mode);
        else
                payload_text_tensor(writer->sink, record, shape, writer->mode);
        sink_add(writer->sink, "}\n", 2);
        return 0;
}

int record_text_json(struct record_writer *writer, struct hr_batch *batch,
                     const struct hr_record *record) {
        struct record_shape shape;
        int r;

        if (record->kind == HR_KIND_MARK)
                return 0;
        r = record_shape_init(&shape, writer->connection, batch, record,
                              writer->mode != PAYLOAD_NONE);
        if (r)
                return r;
        if (shape.kind == HR_KIND_SCALAR)
                return write_scalar(writer, batch, record, &shape);
        return write_payload(writer, batch, record, &shape);
}

/* ---- CSV ------------------------------------------------------------------------------------- */

void record_text_csv_header(struct sink *sink) {
        sink_add_text(sink, "run,tag,step,wall_time,value\n");
}

/* A field of RFC 4180; bytes as they are. */
static char *put_field(char *out, struct hr_text text) {
        if (!memchr(text.bytes, ',', text.size) && !memchr(text.bytes, '"', text.size) &&
            !memchr(text.bytes, '\n', text.size) && !memchr(text.bytes, '\r', text.size)) {
                memcpy(out, text.bytes, text.size);
                return out + text.size;
        }
        *out++ = '"';
        for (size_t i = 0; i < text.size; i++) {
                if (text.bytes[i] == '"')
                        *out++ = '"';
                *out++ = text.bytes[i];
        }
        *out++ = '"';
        return out;
}

/* run,tag, */
static const struct prepared *series_csv(struct record_writer *writer, struct hr_series *series) {
        struct prepared *prepared = series->userdata;
        char *out;

        if (prepared)
                return prepared;
        prepared = prepared_new(writer, &series->userdata,
                                2 * (series->run.size + series->tag.size) + 8, 0);
        if (!prepared)
                return NULL;
        out = put_field(prepared->text, series->run);
        *out++ = ',';
        out = put_field(out, series->tag);
        *out++ = ',';
        prepared->size = (size_t)(out - prepared->text);
        return prepared;
}

/* Numbers have no quotes in CSV, not-a-numbers neither. */
static char *put_csv_double(char *out, double value) {
        if (isfinite(value))
                return json_line_double(out, value);
        return stpcpy(out, isnan(value) ? "NaN" : value > 0 ? "Infinity" : "-Infinity");
}

int record_text_csv(struct record_writer *writer, struct hr_batch *batch,
                    const struct hr_record *record) {
        const struct prepared *series;
        struct record_shape shape;
        char *out;
        int r;

        if (record->kind == HR_KIND_MARK)
                return 0;
        r = record_shape_init(&shape, writer->connection, batch, record, false);
        if (r || shape.kind != HR_KIND_SCALAR)
                return r;
        series = series_csv(writer, hr_record_series(batch, record));
        if (!series || !(out = sink_reserve(writer->sink, series->size + LINE_MOST)))
                return -ENOMEM;
        out = json_line_signed(put_prepared(out, series), record->step);
        *out++ = ',';
        out = put_csv_double(out, record->wall_time);
        *out++ = ',';
        out = put_csv_double(out, record->value);
        *out++ = '\n';
        sink_commit(writer->sink, out);
        return 0;
}
