/* SPDX-License-Identifier: Apache-2.0 */
/* headrace dump: every record below a URL, sorted, one a line. */
#include <errno.h>
#include <string.h>

#include "client/cli/command.h"
#include "client/cli/progress.h"
#include "client/cli/record_text.h"
#include "client/cli/sink.h"
#include "common/base.h"

/* ---- Arguments ------------------------------------------------------------------------------- */

enum {
        OPTION_RUN = 0x200,
        OPTION_TAG,
        OPTION_PLUGIN,
        OPTION_FORMAT,
        OPTION_PAYLOAD,
        OPTION_TRANSPORT
};

/* A word that an option takes, and what it means. */
struct word {
        const char *text;
        int value;
};

static const struct word formats[] = { { "jsonl", 0 }, { "json", 0 }, { "csv", 1 }, { NULL, 0 } };
static const struct word payloads[] = { { "sha256", PAYLOAD_SHA256 },
                                        { "full", PAYLOAD_FULL },
                                        { "none", PAYLOAD_NONE },
                                        { NULL, 0 } };
static const struct word transports[] = { { "map", HR_TRANSPORT_MAP },
                                          { "inline", HR_TRANSPORT_INLINE },
                                          { NULL, 0 } };

/* Globs of one option, NULL at the end. */
struct list {
        const char **items;
        size_t count;
};

struct arguments {
        struct common common; /* first: the input of the parser of the common options */
        const char *url;
        char *shown; /* of it, what may be shown */
        struct list runs, tags, plugins;
        int is_csv, payload, transport;
};

static const struct argp_option options[] = {
        { "run", OPTION_RUN, "GLOB", 0, "Only these runs; may be given more than once", 1 },
        { "tag", OPTION_TAG, "GLOB", 0, "Only these tags", 1 },
        { "plugin", OPTION_PLUGIN, "GLOB", 0, "Only series of these plugins", 1 },
        { "format", OPTION_FORMAT, "FORMAT", 0, "jsonl (default), or csv with the scalars only",
          2 },
        { "payload", OPTION_PAYLOAD, "HOW", 0, "Tensors and blobs: sha256 (default), full or none",
          2 },
        { "transport", OPTION_TRANSPORT, "HOW", 0,
          "map (default): shared memory; inline: through the socket", 3 },
        { 0 },
};

static void list_add(struct list *list, const char *item, struct argp_state *state) {
        const char **items = reallocarray(list->items, list->count + 2, sizeof(*items));

        if (!items) {
                argp_failure(state, EXIT_USAGE, ENOMEM, "arguments");
                return;
        }
        items[list->count++] = item;
        items[list->count] = NULL;
        list->items = items;
}

static int word_value(const struct word *words, const char *argument, const char *option,
                      struct argp_state *state) {
        char all[64] = "";

        for (const struct word *word = words; word->text; word++) {
                size_t size = strlen(all);

                if (strcmp(word->text, argument) == 0)
                        return word->value;
                snprintf(all + size, sizeof(all) - size, "%s%s", size ? ", " : "", word->text);
        }
        argp_error(state, "--%s=%s: not one of %s", option, argument, all);
        return 0;
}

static error_t parse(int key, char *argument, struct argp_state *state) {
        struct arguments *arguments = state->input;

        switch (key) {
        case OPTION_RUN:
                list_add(&arguments->runs, argument, state);
                return 0;
        case OPTION_TAG:
                list_add(&arguments->tags, argument, state);
                return 0;
        case OPTION_PLUGIN:
                list_add(&arguments->plugins, argument, state);
                return 0;
        case OPTION_FORMAT:
                arguments->is_csv = word_value(formats, argument, "format", state);
                return 0;
        case OPTION_PAYLOAD:
                arguments->payload = word_value(payloads, argument, "payload", state);
                return 0;
        case OPTION_TRANSPORT:
                arguments->transport = word_value(transports, argument, "transport", state);
                return 0;
        case ARGP_KEY_INIT:
                state->child_inputs[0] = &arguments->common;
                return 0;
        default:
                return command_parse_url(key, argument, state, &arguments->url);
        }
}

static const struct argp_child children[] = { { &common_argp, 0, "Daemon:", 10 }, { 0 } };
static const struct argp argp = {
        options,
        parse,
        "URL",
        "Writes every record below a URL or directory, sorted by run, file and offset: the same to "
        "the byte each time."
        "\vGlobs are those of the shell, where * matches / too. Exit codes: 0 all good, 1 some "
        "records are damaged or "
        "files unreadable (named on standard error), 2 usage, 3 the source cannot be listed.",
        children,
        NULL,
        NULL,
};

/* ---- Work ------------------------------------------------------------------------------------ */

struct dump {
        const struct arguments *arguments;
        struct record_writer writer;
        int code; /* exit code so far */
};

static void report_lost(struct dump *dump, const struct hr_batch *batch) {
        char text[96];

        dump->code = EXIT_DAMAGE;
        snprintf(text, sizeof(text), "%llu records can no longer be read",
                 (unsigned long long)batch->lost_count);
        complain_file(batch->file ? batch->file->path.bytes : "a file", text);
}

/* What was written of a file before it changed cannot be taken back. */
static void report_news(struct dump *dump, const struct hr_batch *batch) {
        if (batch->event == HR_LOST) {
                report_lost(dump, batch);
        } else if (batch->file) {
                dump->code = EXIT_DAMAGE;
                complain_file(batch->file->path.bytes,
                              batch->event == HR_GONE
                                      ? "left storage while it was read"
                                      : "was replaced while it was read: its lines start anew");
        }
}

static void report_payload(struct dump *dump, const struct hr_batch *batch,
                           const struct hr_record *record) {
        char text[320];

        dump->code = EXIT_DAMAGE;
        snprintf(text, sizeof(text), "the value at offset %llu cannot be read: %s",
                 (unsigned long long)record->source_offset, hr_error(dump->writer.connection));
        complain_file(batch->file->path.bytes, text);
}

/* 0; -errno where it cannot go on. */
static int write_batch(struct dump *dump, struct hr_batch *batch) {
        int (*write_record)(struct record_writer *, struct hr_batch *,
                            const struct hr_record *) = dump->arguments->is_csv ? record_text_csv
                                                                                : record_text_json;
        const struct hr_record *record;
        int r;

        if (batch->event != HR_RECORDS) {
                report_news(dump, batch);
                return 0;
        }
        while ((record = hr_record_next(batch))) {
                r = write_record(&dump->writer, batch, record);
                if (r > 0)
                        report_payload(dump, batch, record);
                else if (r < 0)
                        return r;
                if (dump->writer.sink->error)
                        return dump->writer.sink->error;
        }
        return 0;
}

/* Reads the stream to its end. HR_END, or what ended it before. */
static int write_all(struct dump *dump) {
        struct hr_connection *connection = dump->writer.connection;
        struct hr_batch batch;
        int r;

        for (;;) {
                /* Lines that are ready are not kept while nothing comes. */
                r = hr_next(connection, 0, &batch);
                if (r == HR_AGAIN) {
                        if ((r = sink_flush(dump->writer.sink)) < 0)
                                return r;
                        r = hr_next(connection, -1, &batch);
                }
                if (r)
                        return r;
                if ((r = write_batch(dump, &batch)) < 0)
                        return r;
        }
}

static int finish(struct dump *dump, int r) {
        const struct arguments *arguments = dump->arguments;
        struct hr_connection *connection = dump->writer.connection;
        int write_error = sink_flush(dump->writer.sink), code;

        progress_end(connection);
        if (write_error == -EPIPE)
                return dump->code; /* whoever read has enough */
        if (write_error) {
                complain("standard output", strerror(-write_error), NULL);
                return EXIT_DAMAGE;
        }
        if (r == -ENOMEM)
                complain(arguments->shown, strerror(ENOMEM), NULL);
        else if (r != HR_END)
                return command_failed(connection, arguments->shown, r);
        code = command_check_prefix(connection, arguments->shown);
        if (code != EXIT_GOOD)
                return code;
        code = command_name_damage(connection, arguments->shown, arguments->runs.items);
        return code ? code : dump->code;
}

static int dump_connection(const struct arguments *arguments, struct hr_connection *connection,
                           struct sink *sink) {
        struct dump dump = {
                .arguments = arguments,
                .writer = { .connection = connection,
                            .sink = sink,
                            .mode = (enum payload_mode)arguments->payload },
        };
        struct hr_subscription subscription = HR_SUBSCRIPTION;
        int r;

        subscription.runs = arguments->runs.items;
        subscription.tags = arguments->tags.items;
        subscription.plugins = arguments->plugins.items;
        subscription.order = HR_ORDER_SORTED;
        subscription.transport = (enum hr_transport)arguments->transport;
        progress_begin(connection, arguments->shown);
        r = hr_subscribe(connection, &subscription);
        if (r) {
                progress_end(connection);
                return command_failed(connection, arguments->shown, r);
        }
        if (arguments->is_csv)
                record_text_csv_header(sink);
        r = finish(&dump, write_all(&dump));
        record_text_deinit(&dump.writer);
        return r;
}

int command_dump(int argc, char **argv) {
        struct arguments arguments = { 0 };
        struct hr_connection *connection = NULL;
        struct sink sink;
        int code;

        argp_parse(&argp, argc, argv, 0, NULL, &arguments);
        if (sink_init(&sink, STDOUT_FILENO) < 0) {
                complain("dump", strerror(ENOMEM), NULL);
                return EXIT_SOURCE;
        }
        arguments.shown = command_shown(arguments.url);
        code = command_open(&arguments.common, arguments.url, &connection);
        if (code == EXIT_GOOD)
                code = dump_connection(&arguments, connection, &sink);
        hr_close(connection);
        free(arguments.shown);
        sink_deinit(&sink);
        free(arguments.runs.items);
        free(arguments.tags.items);
        free(arguments.plugins.items);
        return code;
}
