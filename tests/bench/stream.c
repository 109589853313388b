/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A client that reads everything below a URL and adds it up: the time from its start to the end of
 * the stream is what a person waits for; with the records already in the ring, it is how fast a
 * client reads.
 *
 *      stream [--socket PATH] [--inline] [--passes N] URL [ARGUMENT-OF-HEADRACED...]
 *
 * Without --socket it starts a daemon of its own, with the further arguments. Prints one JSON
 * object for each pass.
 */
#include <errno.h>
#include <getopt.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "client/include/headrace.h"
#include "common/base.h"

static double now_s(clockid_t clock) {
        struct timespec now;

        clock_gettime(clock, &now);
        return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

struct totals {
        uint64_t records, batches, skipped;
        double sum, begin_s, first_s, walk_s;
};

static void add_batch(struct totals *totals, struct hr_batch *batch) {
        const struct hr_record *record;
        double begin = now_s(CLOCK_MONOTONIC);

        if (totals->batches++ == 0)
                totals->first_s = begin;
        while ((record = hr_record_next(batch))) {
                if (record->kind == HR_KIND_MARK)
                        continue;
                totals->sum += record->value;
                totals->records++;
        }
        totals->skipped += batch->skipped_count;
        totals->walk_s += now_s(CLOCK_MONOTONIC) - begin;
}

/* The daemon's status as JSON, on one line of the output. */
static void print_status(struct hr_connection *connection) {
        char *status = NULL;

        if (hr_call(connection, "status", NULL, &status) == 0)
                printf(", \"status\": %s", status);
        free(status);
}

static int read_all(const char *url, const struct hr_options *options, enum hr_transport transport,
                    struct totals *totals) {
        struct hr_subscription subscription = HR_SUBSCRIPTION;
        struct hr_connection *connection = NULL;
        CLEANUP(freep) char *error = NULL;
        struct hr_batch batch;
        double cpu = now_s(CLOCK_PROCESS_CPUTIME_ID), end;
        int r;

        subscription.transport = transport;
        r = hr_open(url, options, &connection, &error);
        if (r != 0) {
                fprintf(stderr, "stream: %s\n", error ? error : strerror(-r));
                return -1;
        }
        r = hr_subscribe(connection, &subscription);
        while (r == 0 && (r = hr_next(connection, -1, &batch)) == 0)
                add_batch(totals, &batch);
        end = now_s(CLOCK_MONOTONIC);
        if (r != HR_END) {
                fprintf(stderr, "stream: %s\n", hr_error(connection));
                hr_close(connection);
                return -1;
        }
        printf("{\"seconds\": %.4f, \"first_seconds\": %.4f, \"walk_seconds\": %.4f, "
               "\"cpu_seconds\": %.4f, \"records\": %" PRIu64 ", \"batches\": %" PRIu64
               ", \"damaged\": %" PRIu64 ", \"sum\": %.17g",
               end - totals->begin_s, totals->first_s - totals->begin_s, totals->walk_s,
               now_s(CLOCK_PROCESS_CPUTIME_ID) - cpu, totals->records, totals->batches,
               totals->skipped, totals->sum);
        print_status(connection);
        printf("}\n");
        fflush(stdout);
        hr_close(connection);
        return 0;
}

int main(int argc, char **argv) {
        static const struct option long_options[] = {
                { "socket", required_argument, NULL, 's' },
                { "inline", no_argument, NULL, 'i' },
                { "passes", required_argument, NULL, 'p' },
                { NULL, 0, NULL, 0 },
        };
        struct hr_options options = HR_OPTIONS;
        enum hr_transport transport = HR_TRANSPORT_MAP;
        double begin = now_s(CLOCK_MONOTONIC);
        int passes = 1, option;

        options.daemon = HR_DAEMON_PRIVATE;
        while ((option = getopt_long(argc, argv, "+", long_options, NULL)) >= 0) {
                if (option == 's') {
                        options.socket = optarg;
                        options.daemon = HR_DAEMON_RUNNING;
                } else if (option == 'i') {
                        transport = HR_TRANSPORT_INLINE;
                } else if (option == 'p') {
                        passes = atoi(optarg);
                } else {
                        return 2;
                }
        }
        if (optind >= argc) {
                fprintf(stderr, "usage: stream [--socket PATH] [--inline] [--passes N] URL "
                                "[ARGUMENT-OF-HEADRACED...]\n");
                return 2;
        }
        options.arguments = (const char *const *)(argv + optind + 1);
        while (passes-- > 0) {
                struct totals totals = { .begin_s = begin };

                if (read_all(argv[optind], &options, transport, &totals) < 0)
                        return 1;
                begin = now_s(CLOCK_MONOTONIC);
        }
        return 0;
}
