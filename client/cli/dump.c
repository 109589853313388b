/* SPDX-License-Identifier: Apache-2.0 */
/*
 * headrace dump: every record below a URL, sorted, one a line. Without --follow a run's lines wait
 * for its end, as a record may withdraw points that stand before it; with it nothing waits, and
 * what is withdrawn is told by lines of their own.
 */
#include <errno.h>
#include <string.h>

#include "client/cli/command.h"
#include "client/cli/held_run.h"
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
        OPTION_PURGE,
        OPTION_FOLLOW,
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
static const struct word purges[] = { { "none", HR_PURGE_NONE },
                                      { "start", HR_PURGE_START },
                                      { "order", HR_PURGE_ORDER },
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
        int is_csv, payload, purge, transport;
        bool follow;
};

static const struct argp_option options[] = {
        { "run", OPTION_RUN, "GLOB", 0, "Only these runs; may be given more than once", 1 },
        { "tag", OPTION_TAG, "GLOB", 0, "Only these tags", 1 },
        { "plugin", OPTION_PLUGIN, "GLOB", 0, "Only series of these plugins", 1 },
        { "format", OPTION_FORMAT, "FORMAT", 0, "jsonl (default), or csv with the scalars only",
          2 },
        { "payload", OPTION_PAYLOAD, "HOW", 0, "Tensors and blobs: sha256 (default), full or none",
          2 },
        { "purge", OPTION_PURGE, "RULE", 0,
          "Which points a restart withdraws: order (default), start or none", 2 },
        { "follow", OPTION_FOLLOW, NULL, 0, "Go on when all is read, until interrupted", 2 },
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
        case OPTION_PURGE:
                arguments->purge = word_value(purges, argument, "purge", state);
                return 0;
        case OPTION_FOLLOW:
                arguments->follow = true;
                return 0;
        case OPTION_TRANSPORT:
                arguments->transport = word_value(transports, argument, "transport", state);
                return 0;
        case ARGP_KEY_INIT:
                state->child_inputs[0] = &arguments->common;
                return 0;
        case ARGP_KEY_SUCCESS:
                if (arguments->is_csv && arguments->follow && arguments->purge != HR_PURGE_NONE)
                        argp_error(state, "--follow: CSV cannot say what is withdrawn; "
                                          "take --format=jsonl or --purge=none");
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
        "Writes the records below a URL or directory, sorted by run, file and offset: the same to "
        "the byte each time.  Points that a restart withdraws are left out; see --purge."
        "\vGlobs are those of the shell, where * matches / too. Exit codes: 0 all good, 1 some "
        "records are damaged or "
        "files unreadable (named on standard error), 2 usage, 3 the source cannot be listed.",
        children,
        NULL,
        NULL,
};

/* ---- Work ------------------------------------------------------------------------------------ */

/* Of the lines that are held; what is more goes to a file. */
#define HELD_MEMORY_BYTES (64u << 20)

struct dump {
        const struct arguments *arguments;
        struct record_writer writer;
        struct sink *out;
        bool holds; /* held is used, and the writer writes there */
        struct held_run held;
        int hold_error;             /* 0, or -errno with which lines could not be held */
        const struct hr_file *late; /* the last one that was reported as such */
        int code;                   /* exit code so far */
};

static void report_lost(struct dump *dump, const struct hr_batch *batch) {
        char text[96];

        dump->code = EXIT_DAMAGE;
        snprintf(text, sizeof(text), "%llu records can no longer be read",
                 (unsigned long long)batch->lost_count);
        complain_file(batch->file ? batch->file->path.bytes : "a file", text);
}

/* What was written of a file before it changed cannot be taken back. */
static void report_change(struct dump *dump, const struct hr_batch *batch) {
        dump->code = EXIT_DAMAGE;
        complain_file(batch->file->path.bytes,
                      batch->event == HR_GONE
                              ? "left storage while it was read"
                              : "was replaced while it was read: its lines start anew");
}

/* All points of the file are withdrawn. 0 or -errno. */
static int take_change(struct dump *dump, const struct hr_batch *batch) {
        const struct hr_file *file = batch->file;
        bool is_held = dump->holds && held_run_is(&dump->held, file);

        if (dump->arguments->follow && !dump->arguments->is_csv)
                record_text_withdrawal(dump->out, batch->event == HR_GONE ? "gone" : "replaced",
                                       file->run, file, NULL, NULL);
        else if (!is_held || batch->event == HR_GONE)
                report_change(dump, batch);
        return is_held ? held_run_withdraw(&dump->held, NULL, file, INT64_MIN) : 0;
}

static int take_news(struct dump *dump, const struct hr_batch *batch) {
        if (batch->event == HR_LOST)
                report_lost(dump, batch);
        else if (batch->file)
                return take_change(dump, batch);
        return 0;
}

static void report_payload(struct dump *dump, const struct hr_batch *batch,
                           const struct hr_record *record) {
        char text[320];

        dump->code = EXIT_DAMAGE;
        snprintf(text, sizeof(text), "the value at offset %llu cannot be read: %s",
                 (unsigned long long)record->source_offset, hr_error(dump->writer.connection));
        complain_file(batch->file->path.bytes, text);
}

/* What stands of the run that is held is written; hold_error is set where it cannot be. */
static void release(struct dump *dump) {
        if (dump->holds && !dump->hold_error)
                dump->hold_error = held_run_release(&dump->held);
}

/* The stream goes from run to run: those before this one are complete. 0 or -errno. */
static int turn_to(struct dump *dump, const struct hr_file *file) {
        if (!dump->holds || held_run_is(&dump->held, file))
                return 0;
        release(dump);
        return dump->hold_error ? dump->hold_error : held_run_begin(&dump->held, file);
}

/* A file that could not be read when its run was: lines that it withdraws are out already. */
static void report_late(struct dump *dump, const struct hr_file *file) {
        if (dump->late == file)
                return;
        dump->late = file;
        dump->code = EXIT_DAMAGE;
        complain_file(file->path.bytes, "came late: points that it withdraws may be written");
}

/* What the records up to this one withdraw; NULL: the rest of the batch's. 0 or -errno. */
static int take_withdrawals(struct dump *dump, struct hr_batch *batch,
                            const struct hr_record *record) {
        const struct hr_withdrawal *withdrawal;
        int r = 0;

        while (r == 0 && (withdrawal = hr_withdrawal_next(batch, record))) {
                if (dump->holds)
                        r = held_run_withdraw(&dump->held, withdrawal->series, withdrawal->file,
                                              withdrawal->from_step);
                else
                        record_text_withdrawal(dump->out, "restart", batch->file->run,
                                               withdrawal->file, withdrawal->series,
                                               &withdrawal->from_step);
                if (dump->holds && dump->held.is_again)
                        report_late(dump, batch->file);
        }
        return r;
}

/* 0; -errno where it cannot go on. */
static int write_record(struct dump *dump, struct hr_batch *batch, const struct hr_record *record) {
        int (*write_line)(struct record_writer *, struct hr_batch *,
                          const struct hr_record *) = dump->arguments->is_csv ? record_text_csv
                                                                              : record_text_json;
        int r;

        if (dump->holds)
                held_run_begin_line(&dump->held, hr_record_series(batch, record), batch->file,
                                    record->step);
        r = write_line(&dump->writer, batch, record);
        if (r > 0)
                report_payload(dump, batch, record);
        else if (r < 0)
                return r;
        if (dump->holds)
                dump->hold_error = held_run_end_line(&dump->held);
        return dump->hold_error ? dump->hold_error : dump->out->error;
}

/* 0; -errno where it cannot go on. */
static int write_batch(struct dump *dump, struct hr_batch *batch) {
        const struct hr_record *record;
        int r;

        if (batch->event != HR_RECORDS)
                return take_news(dump, batch);
        r = turn_to(dump, batch->file);
        while (r == 0 && (record = hr_record_next(batch))) {
                r = take_withdrawals(dump, batch, record);
                if (r == 0)
                        r = write_record(dump, batch, record);
        }
        return r < 0 ? r : take_withdrawals(dump, batch, NULL);
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
                        if ((r = sink_flush(dump->out)) < 0)
                                return r;
                        r = hr_next(connection, -1, &batch);
                }
                if (r)
                        return r;
                if ((r = write_batch(dump, &batch)) < 0)
                        return r;
        }
}

static void report_left_out(const struct dump *dump) {
        char text[96];

        if (!dump->holds || !dump->held.left_out)
                return;
        if (dump->held.left_out == 1)
                snprintf(text, sizeof(text), "1 point is left out: a restart withdraws it");
        else
                snprintf(text, sizeof(text), "%llu points are left out: restarts withdraw them",
                         (unsigned long long)dump->held.left_out);
        complain(dump->arguments->shown, text,
                 dump->held.left_out == 1 ? "--purge=none writes it, too"
                                          : "--purge=none writes them, too");
}

/* Lines could not be held, so that nobody knows which of them stand. */
static int report_hold_error(const struct dump *dump) {
        complain("lines that wait for the end of their run", strerror(-dump->hold_error),
                 "TMPDIR names the directory they wait in; with --purge=none none has to");
        return EXIT_DAMAGE;
}

static int finish(struct dump *dump, int r) {
        const struct arguments *arguments = dump->arguments;
        struct hr_connection *connection = dump->writer.connection;
        int write_error, code;

        release(dump);
        write_error = sink_flush(dump->out);
        progress_end(connection);
        if (write_error == -EPIPE)
                return dump->code; /* whoever read has enough */
        if (write_error) {
                complain("standard output", strerror(-write_error), NULL);
                return EXIT_DAMAGE;
        }
        if (dump->hold_error)
                return report_hold_error(dump);
        report_left_out(dump);
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

static int subscribe(const struct arguments *arguments, struct hr_connection *connection) {
        struct hr_subscription subscription = HR_SUBSCRIPTION;
        int r;

        subscription.runs = arguments->runs.items;
        subscription.tags = arguments->tags.items;
        subscription.plugins = arguments->plugins.items;
        subscription.order = arguments->follow ? HR_ORDER_RUN : HR_ORDER_SORTED;
        subscription.follow = arguments->follow;
        subscription.purge = (enum hr_purge)arguments->purge;
        subscription.transport = (enum hr_transport)arguments->transport;
        progress_begin(connection, arguments->shown);
        r = hr_subscribe(connection, &subscription);
        if (r == 0)
                return EXIT_GOOD;
        progress_end(connection);
        return command_failed(connection, arguments->shown, r);
}

static int dump_connection(const struct arguments *arguments, struct hr_connection *connection,
                           struct sink *sink) {
        struct dump dump = {
                .arguments = arguments,
                .writer = { .connection = connection,
                            .sink = sink,
                            .mode = (enum payload_mode)arguments->payload },
                .out = sink,
                .holds = arguments->purge != HR_PURGE_NONE && !arguments->follow,
        };
        int r = subscribe(arguments, connection);

        if (r != EXIT_GOOD)
                return r;
        if (arguments->is_csv)
                record_text_csv_header(sink);
        if (dump.holds) {
                dump.hold_error = held_run_init(&dump.held, sink, HELD_MEMORY_BYTES);
                dump.writer.sink = &dump.held.lines;
        }
        r = finish(&dump, dump.hold_error ? dump.hold_error : write_all(&dump));
        record_text_deinit(&dump.writer);
        if (dump.holds)
                held_run_deinit(&dump.held);
        return r;
}

int command_dump(int argc, char **argv) {
        struct arguments arguments = { .purge = HR_PURGE_ORDER };
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
        common_deinit(&arguments.common);
        sink_deinit(&sink);
        free(arguments.runs.items);
        free(arguments.tags.items);
        free(arguments.plugins.items);
        return code;
}
