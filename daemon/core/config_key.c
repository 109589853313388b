/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The table, and every text that is made of it. A size is said in the largest unit that divides it.
 */
#include "daemon/core/config_key.h"

#include <assert.h>
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "common/base.h"
#include "daemon/core/config.h"

#define KIB (UINT64_C(1) << 10)
#define MIB (UINT64_C(1) << 20)
#define TIB (UINT64_C(1) << 40)
#define NAME_MAX_BYTES 64 /* longer names are compared up to here */

#define FIELD(member) offsetof(struct config, member)

static_assert(sizeof(enum config_huge) == sizeof(unsigned) &&
                      sizeof(enum config_checksum) == sizeof(unsigned) &&
                      sizeof(enum log_level) == sizeof(unsigned),
              "words are stored so");

const struct config_key config_keys[] = {
        { .name = "sources",
          .type = CONFIG_TYPE_SOURCES,
          .offset = FIELD(sources),
          .help = "What is watched: URLs and paths, or objects with url, and name, include, "
                  "exclude or since, for buckets and containers anonymous, for s3:// endpoint, "
                  "region, "
                  "profile or requester_pays, for http:// bearer_file, client_certificate or "
                  "client_key." },
        { .name = "socket",
          .type = CONFIG_TYPE_PATH,
          .offset = FIELD(socket),
          .help = "Where clients attach; empty for the default place." },
        { .name = "ring.size",
          .type = CONFIG_TYPE_SIZE,
          .offset = FIELD(ring_bytes),
          .initial = 256 * MIB,
          .min = 4 * MIB,
          .max = TIB,
          .help = "Size of the shared memory that holds decoded records." },
        { .name = "ring.huge",
          .type = CONFIG_TYPE_WORD,
          .offset = FIELD(ring_huge),
          .initial = CONFIG_HUGE_TRY,
          .words = { "off", "try", "on" },
          .help = "Huge pages for the ring: never, where there are free ones, or else fail." },
        { .name = "decoders",
          .type = CONFIG_TYPE_COUNT,
          .offset = FIELD(decoders),
          .max = 16,
          .help = "Threads that verify and decode; 0 for one a core." },
        { .name = "fetch.inflight",
          .type = CONFIG_TYPE_SIZE,
          .offset = FIELD(fetch_inflight_bytes),
          .initial = 256 * MIB,
          .min = MIB,
          .max = TIB,
          .help = "Most memory for reads in flight." },
        { .name = "fetch.connections_max",
          .type = CONFIG_TYPE_COUNT,
          .offset = FIELD(fetch_connections_max),
          .initial = 1024,
          .min = 1,
          .max = 65536,
          .help = "Most requests at once to one server." },
        { .name = "fetch.window",
          .type = CONFIG_TYPE_COUNT,
          .offset = FIELD(fetch_window),
          .initial = 0,
          .min = 0,
          .max = 65536,
          .help = "Requests at once to one server to begin with: more go out as answers come, "
                  "fewer "
                  "when it asks for less; 0 for 512 to public clouds, 128 to other servers, 16 to "
                  "file systems." },
        { .name = "fetch.requests_per_second_max",
          .type = CONFIG_TYPE_COUNT,
          .offset = FIELD(fetch_requests_per_second_max),
          .initial = 0,
          .min = 0,
          .max = 1000000,
          .help = "Most requests a second for bytes from one server; 0 for any number." },
        { .name = "fetch.bytes_per_second_max",
          .type = CONFIG_TYPE_SIZE,
          .offset = FIELD(fetch_bytes_per_second_max),
          .initial = 0,
          .min = 0,
          .max = TIB,
          .help = "Most bytes a second from one server; 0 for any number." },
        { .name = "fetch.part",
          .type = CONFIG_TYPE_SIZE,
          .offset = FIELD(fetch_part_bytes),
          .initial = 4 * MIB,
          .min = MIB,
          .max = 8 * MIB,
          .help = "Larger files are read in parts of this size." },
        { .name = "fetch.whole_max",
          .type = CONFIG_TYPE_SIZE,
          .offset = FIELD(fetch_whole_max_bytes),
          .initial = 64 * MIB,
          .max = TIB,
          .help = "Largest file that is read whole from a server that ignores ranges." },
        { .name = "checksum",
          .type = CONFIG_TYPE_WORD,
          .offset = FIELD(checksum),
          .initial = CONFIG_CHECKSUM_ALWAYS,
          .words = { "always", "length-only" },
          .help = "Which CRCs of a record are checked: both, or that of its length alone (wrong "
                  "values are then shown as they are; it saves next to nothing)." },
        { .name = "record_max",
          .type = CONFIG_TYPE_SIZE,
          .offset = FIELD(record_max_bytes),
          .max = TIB,
          .help = "Larger records are skipped as damaged; 0 for as much as fetch.inflight." },
        { .name = "payload_inline_max",
          .type = CONFIG_TYPE_SIZE,
          .offset = FIELD(payload_inline_max_bytes),
          .initial = 256 * KIB,
          .max = 512 * KIB,
          .help = "Larger tensors and blobs are not kept in the ring, but read again when a client "
                  "asks for them." },
        { .name = "poll",
          .type = CONFIG_TYPE_POLL,
          .offset = FIELD(poll_ns),
          .initial = CONFIG_POLL_AUTO,
          .words = { "auto", "on-demand", "never" },
          .help = "How often storage is looked at, in seconds; auto: every few seconds while files "
                  "grow and a client follows, up to a minute while nothing changes, not at all "
                  "when "
                  "nobody has asked for 10 minutes; on-demand: when a client asks." },
        { .name = "max_requests_per_day",
          .type = CONFIG_TYPE_COUNT,
          .offset = FIELD(max_requests_per_day),
          .max = 1000000000,
          .help = "After so many requests to one server in a day (UTC) it is not polled any more "
                  "on "
                  "that day; 0 for no limit." },
        { .name = "remember",
          .type = CONFIG_TYPE_PLACE,
          .offset = FIELD(remember),
          .help = "Whether, or in which directory, the names of event files are kept, so that "
                  "after a "
                  "restart reading begins beside the first listing; true for headrace in the "
                  "user's "
                  "cache, or the state directory of the unit." },
        { .name = "price.list",
          .type = CONFIG_TYPE_PRICE,
          .offset = FIELD(price_list),
          .initial = CONFIG_PRICE_AUTO,
          .words = { "auto" },
          .help = "What 1000 listing requests cost, for the estimates; auto for the public price "
                  "of "
                  "S3, Cloud Storage and Azure, and nothing elsewhere." },
        { .name = "price.read",
          .type = CONFIG_TYPE_PRICE,
          .offset = FIELD(price_read),
          .initial = CONFIG_PRICE_AUTO,
          .words = { "auto" },
          .help = "What 1000 reads cost, likewise." },
        { .name = "sessions_max",
          .type = CONFIG_TYPE_COUNT,
          .offset = FIELD(sessions_max),
          .max = 65535,
          .help = "Most clients at once that read records; 0 for as many as the ring has room "
                  "for." },
        { .name = "allow_uids",
          .type = CONFIG_TYPE_UIDS,
          .offset = FIELD(allow_uids),
          .count_offset = FIELD(allow_uid_count),
          .help = "Numbers of the users who may attach besides root and the daemon's own; empty "
                  "for all that the socket's mode "
                  "lets through." },
        { .name = "admin_uids",
          .type = CONFIG_TYPE_UIDS,
          .offset = FIELD(admin_uids),
          .count_offset = FIELD(admin_uid_count),
          .help = "Numbers of the users who may add and remove sources while it runs, besides root "
                  "and the daemon's own." },
        { .name = "allow_sources",
          .type = CONFIG_TYPE_URLS,
          .offset = FIELD(allow_sources),
          .help = "URLs and paths below which sources may be added while it runs; empty for "
                  "anywhere." },
        { .name = "log.level",
          .type = CONFIG_TYPE_WORD,
          .offset = FIELD(log_level),
          .initial = LOG_LEVEL_WARNING,
          .words = { "error", "warning", "info", "debug" },
          .help = "Least important messages that are logged." },
};

const size_t config_key_count = ARRAY_SIZE(config_keys);

const struct config_key *config_key_find(const char *name) {
        for (size_t i = 0; i < config_key_count; i++) {
                if (!strcmp(config_keys[i].name, name))
                        return &config_keys[i];
        }
        return NULL;
}

/* Levenshtein's distance, one row of the matrix at a time. */
static unsigned distance(const char *a, const char *b) {
        size_t a_size = strnlen(a, NAME_MAX_BYTES), b_size = strnlen(b, NAME_MAX_BYTES);
        unsigned row[NAME_MAX_BYTES + 1];

        for (unsigned j = 0; j <= b_size; j++)
                row[j] = j;
        for (unsigned i = 1; i <= a_size; i++) {
                unsigned diagonal = row[0];

                row[0] = i;
                for (size_t j = 1; j <= b_size; j++) {
                        unsigned best = diagonal + (a[i - 1] != b[j - 1]);

                        diagonal = row[j];
                        if (row[j - 1] + 1 < best)
                                best = row[j - 1] + 1;
                        if (row[j] + 1 < best)
                                best = row[j] + 1;
                        row[j] = best;
                }
        }
        return row[b_size];
}

const struct config_key *config_key_nearest(const char *name) {
        const struct config_key *nearest = config_keys;

        for (size_t i = 1; i < config_key_count; i++) {
                if (distance(name, config_keys[i].name) < distance(name, nearest->name))
                        nearest = &config_keys[i];
        }
        return nearest;
}

static void write_size(FILE *file, uint64_t size_bytes) {
        static const char units[] = "\0KMGT";
        unsigned unit = 0;

        while (size_bytes > 0 && size_bytes % KIB == 0 && unit < 4) {
                size_bytes /= KIB;
                unit++;
        }
        fprintf(file, "%" PRIu64 "%.1s", size_bytes, units + unit);
}

static void write_words(FILE *file, const struct config_key *key) {
        for (size_t i = 0; key->words[i]; i++)
                fprintf(file, "%s\"%s\"",
                        i == 0              ? ""
                        : key->words[i + 1] ? ", "
                                            : " or ",
                        key->words[i]);
}

static void write_allowed(FILE *file, const struct config_key *key) {
        switch (key->type) {
        case CONFIG_TYPE_SOURCES:
                fputs("an array of URLs or paths, or of objects with \"url\" and maybe \"name\", "
                      "globs in \"include\" and \"exclude\", a time in \"since\", texts in "
                      "\"endpoint\", \"region\" and \"profile\", true or false in "
                      "\"anonymous\" and \"requester_pays\", and absolute paths in "
                      "\"bearer_file\", \"client_certificate\" and \"client_key\"",
                      file);
                break;
        case CONFIG_TYPE_UIDS:
                fputs("an array of user numbers", file);
                break;
        case CONFIG_TYPE_URLS:
                fputs("an array of URLs and paths", file);
                break;
        case CONFIG_TYPE_PATH:
                fputs("a path of at most 107 bytes", file);
                break;
        case CONFIG_TYPE_SIZE:
                fputs("a number of bytes, also with K, M, G or T behind it, from ", file);
                write_size(file, key->min);
                fputs(" to ", file);
                write_size(file, key->max);
                break;
        case CONFIG_TYPE_COUNT:
                fprintf(file, "a whole number from %" PRIu64 " to %" PRIu64, key->min, key->max);
                break;
        case CONFIG_TYPE_WORD:
                write_words(file, key);
                break;
        case CONFIG_TYPE_POLL:
                fputs("\"auto\", \"on-demand\", \"never\" or a number of seconds from 0.05 to "
                      "86400",
                      file);
                break;
        case CONFIG_TYPE_PLACE:
                fputs("true, false or an absolute path", file);
                break;
        case CONFIG_TYPE_PRICE:
                fputs("\"auto\" or a number of dollars from 0 to 1000", file);
                break;
        }
}

static void write_default(FILE *file, const struct config_key *key) {
        switch (key->type) {
        case CONFIG_TYPE_SOURCES:
        case CONFIG_TYPE_UIDS:
        case CONFIG_TYPE_URLS:
                fputs("[]", file);
                break;
        case CONFIG_TYPE_PATH:
                fputs("\"\"", file);
                break;
        case CONFIG_TYPE_SIZE:
                fputs("\"", file);
                write_size(file, key->initial);
                fputs("\"", file);
                break;
        case CONFIG_TYPE_COUNT:
                fprintf(file, "%" PRIu64, key->initial);
                break;
        case CONFIG_TYPE_WORD:
        case CONFIG_TYPE_POLL:
                fprintf(file, "\"%s\"", key->words[key->initial]);
                break;
        case CONFIG_TYPE_PLACE:
                fputs("true", file);
                break;
        case CONFIG_TYPE_PRICE:
                fprintf(file, "\"%s\"", key->words[0]);
                break;
        }
}

/* What a writer writes about the key, as a string. */
static char *text_of(void (*write)(FILE *file, const struct config_key *key),
                     const struct config_key *key) {
        char *text = NULL;
        size_t size;
        FILE *file = open_memstream(&text, &size);

        if (!file)
                return NULL;
        write(file, key);
        if (fclose(file) != 0) {
                free(text);
                return NULL;
        }
        return text;
}

char *config_key_allowed(const struct config_key *key) {
        return text_of(write_allowed, key);
}

char *config_key_default(const struct config_key *key) {
        return text_of(write_default, key);
}

static void write_key_help(FILE *file, const struct config_key *key) {
        fprintf(file, "  %-22s %s\n  %-22s (", key->name, key->help, "");
        write_allowed(file, key);
        fputs("; default ", file);
        write_default(file, key);
        fputs(")\n", file);
}

static void write_key_json(FILE *file, const struct config_key *key) {
        fprintf(file, "%s\n    \"%s\": ", key == config_keys ? "{" : ",", key->name);
        write_default(file, key);
        if (key == &config_keys[config_key_count - 1])
                fputs("\n}\n", file);
}

static void write_key_manual(FILE *file, const struct config_key *key) {
        fprintf(file, ".It Cm %s\n%s\nIt is ", key->name, key->help);
        write_allowed(file, key);
        fputs(".\nDefault:\n.Ql ", file);
        write_default(file, key);
        fputs(" .\n", file);
}

int config_key_write_all(FILE *file, enum config_format format) {
        static void (*const writers[])(FILE * file, const struct config_key *key) = {
                [CONFIG_FORMAT_HELP] = write_key_help,
                [CONFIG_FORMAT_JSON] = write_key_json,
                [CONFIG_FORMAT_MANUAL] = write_key_manual,
        };

        for (size_t i = 0; i < config_key_count; i++)
                writers[format](file, &config_keys[i]);
        return ferror(file) ? -EIO : 0;
}
