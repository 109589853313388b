/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The keys of the configuration: one table, of which the parser, --help, conf/headrace.json and the
 * manual page are made.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

enum config_type {
        CONFIG_TYPE_SOURCES, /* struct config_source *, and its count */
        CONFIG_TYPE_UIDS,    /* uid_t *, and its count */
        CONFIG_TYPE_URLS,    /* char **, ends with NULL; NULL: none */
        CONFIG_TYPE_PATH,    /* char *, NULL for none */
        CONFIG_TYPE_SIZE,    /* uint64_t */
        CONFIG_TYPE_COUNT,   /* unsigned */
        CONFIG_TYPE_WORD,    /* an enum: the index in words */
        CONFIG_TYPE_POLL,    /* int64_t, nanoseconds */
        CONFIG_TYPE_PRICE,   /* uint64_t, 10^-9 dollars */
        CONFIG_TYPE_PLACE,   /* char *, NULL for the default, "" for none */
};

struct config_key {
        const char *name;
        enum config_type type;
        size_t offset;        /* in struct config */
        size_t count_offset;  /* likewise, of the count of a list of numbers */
        uint64_t initial;     /* the default, of types that are a number */
        uint64_t min, max;    /* of sizes and counts */
        const char *words[5]; /* NULL-terminated */
        const char *help;
};

extern const struct config_key config_keys[];
extern const size_t config_key_count;

const struct config_key *config_key_find(const char *name); /* NULL if there is none */

/* The key whose name needs the fewest changes to become this one. Never NULL. */
const struct config_key *config_key_nearest(const char *name);

/*
 * What a value of the key may be, as the end of the sentence "must be ...". The caller frees; NULL:
 * no memory.
 */
char *config_key_allowed(const struct config_key *key);

/* The default as JSON. The caller frees; NULL: no memory. */
char *config_key_default(const struct config_key *key);

enum config_format {
        CONFIG_FORMAT_HELP,   /* lines for --help */
        CONFIG_FORMAT_JSON,   /* conf/headrace.json */
        CONFIG_FORMAT_MANUAL, /* the list of keys in docs/man/headraced.conf.5 */
};

/* Writes all keys. -ENOMEM, -EIO. */
int config_key_write_all(FILE *file, enum config_format format);
