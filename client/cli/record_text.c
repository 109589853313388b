/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The texts of a file and of a series are the same in every line, so they are made once and kept
 * with them (userdata); a line is then two copies and a few numbers.
 */
#include "client/cli/record_text.h"

#include <errno.h>
#include <math.h>
#include <openssl/evp.h>
#include <stdlib.h>

#include "client/cli/json_line.h"
#include "client/cli/payload_text.h"
#include "common/base.h"
#include "common/tensor_type.h"

/* A line has longer texts of its series by size and hash, unless payloads are wanted in full. */
#define TEXT_MOST 4096

#define SHA256_BYTES 32

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

static bool is_shown_whole(const struct record_writer *writer, struct hr_text text) {
        return text.size <= TEXT_MOST || writer->mode == PAYLOAD_FULL;
}

/* "key":{"bytes":...,"sha256":...} */
static char *put_digest(char *out, const char *key, struct hr_text text) {
        uint8_t digest[SHA256_BYTES] = { 0 };

        EVP_Digest(text.bytes, text.size, digest, NULL, EVP_sha256(), NULL);
        out = stpcpy(json_line_key(out, key), "{\"bytes\":");
        out = json_line_hex(json_line_key(json_line_unsigned(out, text.size), "sha256"), digest,
                            sizeof(digest));
        *out++ = '}';
        return out;
}

/* A text of the series; nothing where it has none. */
static char *put_text(const struct record_writer *writer, char *out, const char *key,
                      struct hr_text text) {
        if (text.size == 0)
                return out;
        return is_shown_whole(writer, text) ? put_name(out, key, text) : put_digest(out, key, text);
}

static char *put_content(const struct record_writer *writer, char *out, struct hr_text content) {
        if (content.size == 0)
                return out;
        if (!is_shown_whole(writer, content))
                return put_digest(out, "content", content);
        return json_line_hex(json_line_key(out, "content"), content.bytes, content.size);
}

static char *put_class(char *out, uint8_t data_class) {
        static const char *const names[] = {
                [HR_CLASS_UNKNOWN] = "unknown",
                [HR_CLASS_SCALAR] = "scalar",
                [HR_CLASS_TENSOR] = "tensor",
                [HR_CLASS_BLOBS] = "blobs",
        };
        const char *name = names[data_class < ARRAY_SIZE(names) ? data_class : HR_CLASS_UNKNOWN];

        return json_line_string(json_line_key(out, "class"), name, strlen(name));
}

#define DIGEST_MOST 128 /* of put_digest(), with its key */

static size_t text_most(const struct record_writer *writer, struct hr_text text) {
        return is_shown_whole(writer, text) ? name_most(text) : DIGEST_MOST;
}

/* ,"tag":...,"plugin":...,"class":... and the series' texts */
static const struct prepared *series_json(struct record_writer *writer, struct hr_series *series) {
        struct prepared *prepared = series->userdata;
        char *out;

        if (prepared && prepared->revision == series->revision)
                return prepared;
        prepared = prepared_new(writer, &series->userdata,
                                name_most(series->tag) + name_most(series->plugin) + 32 +
                                        text_most(writer, series->content) +
                                        text_most(writer, series->display_name) +
                                        text_most(writer, series->description),
                                series->revision);
        if (!prepared)
                return NULL;
        out = put_name(put_name(prepared->text, "tag", series->tag), "plugin", series->plugin);
        out = put_content(writer, put_class(out, series->data_class), series->content);
        out = put_text(writer, out, "display_name", series->display_name);
        out = put_text(writer, out, "description", series->description);
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

/* True where the number alone does not say what was written: NaN, 64-bit integers. */
static bool needs_bits(const struct hr_record *record, const struct hr_value *value) {
        uint8_t type = tensor_type_base(record->dtype);

        return value->bits_bytes > 0 &&
               (isnan(value->number) || type == DT_INT64 || type == DT_UINT64);
}

static char *put_bits(char *out, const struct hr_value *value) {
        uint8_t big_endian[8];

        for (unsigned i = 0; i < value->bits_bytes; i++)
                big_endian[i] = (uint8_t)(value->bits >> 8 * (value->bits_bytes - 1 - i));
        return json_line_hex(json_line_key(out, "bits"), big_endian, value->bits_bytes);
}

static int write_scalar(struct record_writer *writer, struct hr_batch *batch,
                        const struct hr_record *record, const struct hr_value *value) {
        char *out = put_head(writer, batch, record, "\"scalar\"");

        if (!out)
                return -ENOMEM;
        out = json_line_double(json_line_key(out, "value"), value->number);
        if (needs_bits(record, value))
                out = put_bits(out, value);
        memcpy(out, "}\n", 2);
        sink_commit(writer->sink, out + 2);
        return 0;
}

static int write_payload(struct record_writer *writer, struct hr_batch *batch,
                         const struct hr_record *record, const struct hr_value *value) {
        char *out = put_head(writer, batch, record,
                             value->kind == HR_KIND_BLOBS ? "\"blobs\"" : "\"tensor\"");

        if (!out)
                return -ENOMEM;
        sink_commit(writer->sink, out);
        if (value->kind == HR_KIND_BLOBS)
                payload_text_blobs(writer->sink, value, writer->mode);
        else
                payload_text_tensor(writer->sink, record, value, writer->mode);
        sink_add(writer->sink, "}\n", 2);
        return 0;
}

int record_text_json(struct record_writer *writer, struct hr_batch *batch,
                     const struct hr_record *record) {
        struct hr_value value;
        int r;

        if (record->kind == HR_KIND_MARK)
                return 0;
        r = hr_value(writer->connection, batch, record, writer->mode != PAYLOAD_NONE, &value);
        if (r)
                return r;
        if (value.kind == HR_KIND_SCALAR)
                return write_scalar(writer, batch, record, &value);
        return write_payload(writer, batch, record, &value);
}

void record_text_withdrawal(struct sink *sink, const char *reason, struct hr_text run,
                            const struct hr_file *file, const struct hr_series *series,
                            const int64_t *from_step) {
        const struct hr_text none = { "", 0 };
        size_t most = name_most(run) + name_most(file ? file->path : none) +
                      name_most(series ? series->tag : none);
        char *begin = sink_reserve(sink, most + LINE_MOST), *out = begin;

        if (!begin)
                return;
        if (file)
                out = put_name(out, "file", file->path);
        out = put_name(out, "run", run);
        *begin = '{'; /* the first member's comma */
        out = stpcpy(json_line_key(out, "kind"), "\"withdrawal\"");
        out = json_line_string(json_line_key(out, "reason"), reason, strlen(reason));
        if (series)
                out = put_name(out, "tag", series->tag);
        if (from_step)
                out = json_line_signed(json_line_key(out, "from_step"), *from_step);
        memcpy(out, "}\n", 2);
        sink_commit(sink, out + 2);
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
        struct hr_value value;
        char *out;
        int r;

        if (record->kind == HR_KIND_MARK)
                return 0;
        r = hr_value(writer->connection, batch, record, false, &value);
        if (r || value.kind != HR_KIND_SCALAR)
                return r;
        series = series_csv(writer, hr_record_series(batch, record));
        if (!series || !(out = sink_reserve(writer->sink, series->size + LINE_MOST)))
                return -ENOMEM;
        out = json_line_signed(put_prepared(out, series), record->step);
        *out++ = ',';
        out = put_csv_double(out, record->wall_time);
        *out++ = ',';
        out = put_csv_double(out, value.number);
        *out++ = '\n';
        sink_commit(writer->sink, out);
        return 0;
}
