/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The configuration: one struct, filled from defaults, files, the environment and options, in this
 * order; what comes later wins, key by key. The keys are those of config_key.h. Not bound to a
 * thread.
 *
 * Every loader that fails leaves a sentence in *ret_error (the caller's to free; NULL only if
 * memory ran out) that says where (file and line, variable or option), which key, what it was, and
 * what is allowed. The configuration is then still valid, but may hold a part of what was read.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "daemon/core/log.h"

enum config_huge { CONFIG_HUGE_OFF, CONFIG_HUGE_TRY, CONFIG_HUGE_ON };
enum config_checksum { CONFIG_CHECKSUM_ALWAYS, CONFIG_CHECKSUM_LENGTH_ONLY };

#define CONFIG_POLL_AUTO 0
#define CONFIG_POLL_NEVER (-1)
#define CONFIG_POLL_ON_DEMAND (-2)
#define CONFIG_PRICE_AUTO UINT64_MAX

/* Which files of a source are left out (docs/FETCH.md, "Filters"). Lists end with NULL. */
struct config_filter {
        char **include; /* globs of paths (common/path_glob.h); NULL: all */
        char **exclude; /* NULL: none */
        char *since;    /* modified then or later (common/since.h); NULL: whenever */
};

/* How a source is reached, where that is not as the environment has it (docs/FETCH.md). */
struct config_access {
        char *endpoint, *region, *profile; /* NULL: as the environment has it */
        bool anonymous;                    /* requests are not signed */
        bool requester_pays;
        /* absolute paths, of what proves who asks (docs/FETCH.md, "Web servers"); NULL: none */
        char *bearer_file, *client_certificate, *client_key;
};

struct config_source {
        char *url;
        char *name; /* NULL: none was given */
        struct config_filter filter;
        struct config_access access;
};

struct config {
        struct config_source *sources;
        size_t source_count;
        char *socket; /* NULL: the default place */
        uint64_t ring_bytes;
        enum config_huge ring_huge;
        unsigned decoders; /* 0: chosen by the number of cores */
        uint64_t fetch_inflight_bytes;
        unsigned fetch_connections_max;
        unsigned fetch_window;                  /* 0: as the kind of storage has it */
        unsigned fetch_requests_per_second_max; /* 0: any */
        uint64_t fetch_bytes_per_second_max;    /* 0: any */
        uint64_t fetch_part_bytes;
        uint64_t fetch_whole_max_bytes;
        enum config_checksum checksum;
        uint64_t record_max_bytes; /* 0: as fetch_inflight_bytes */
        uint64_t payload_inline_max_bytes;
        int64_t poll_ns;               /* or CONFIG_POLL_* */
        unsigned max_requests_per_day; /* 0: no limit */
        char *remember; /* NULL: in the default place; "": not at all; else a directory */
        uint64_t price_list, price_read; /* of one request, 10^-9 dollars; or CONFIG_PRICE_AUTO */
        unsigned sessions_max;           /* 0: as many as the ring allows */
        uid_t *allow_uids;               /* who may attach besides root and the daemon's own user */
        size_t allow_uid_count;
        uid_t *admin_uids; /* who may add and remove sources, likewise */
        size_t admin_uid_count;
        char **allow_sources; /* URLs below which sources may be added, ends with NULL; NULL: all */
        enum log_level log_level;
};

void config_source_deinit(struct config_source *source);
/* A copy of the filter, for config_source_deinit(). -ENOMEM. */
int config_filter_dup(const struct config_filter *filter, struct config_filter *ret_filter);

void config_init(struct config *config); /* all defaults */
void config_deinit(struct config *config);

/*
 * Reads a JSON file. An empty one is an error, a missing one too (-ENOENT). -EINVAL: what it says
 * is wrong; -ENOMEM; else the error of open(2) or read(2).
 */
int config_load_file(struct config *config, const char *path, char **ret_error);

/*
 * Reads /etc/headrace/headrace.json and then headrace/headrace.json below $XDG_CONFIG_HOME (or
 * ~/.config); those that are not there are no error. As config_load_file().
 */
int config_load_files(struct config *config, char **ret_error);

/*
 * Reads the variables HEADRACE_<KEY>, with underscores for dots: HEADRACE_RING_SIZE. -EINVAL,
 * -ENOMEM.
 */
int config_load_environment(struct config *config, char **ret_error);

/*
 * Sets one key from text, as for --set ring.size=64M. Lists are a JSON array, or one element
 * without quotes. where names the origin in errors ("--set", "--socket"). -EINVAL, -ENOMEM.
 */
int config_set(struct config *config, const char *where, const char *key, const char *value,
               char **ret_error);

/* The same for "key=value" in one string. */
int config_set_assignment(struct config *config, const char *where, const char *assignment,
                          char **ret_error);
