/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the subcommands share: exit codes, the options that all of them have, messages on standard
 * error, and getting a connection.
 */
#pragma once

#include <argp.h>
#include <jansson.h>
#include <stdbool.h>

#include "client/include/headrace.h"

enum exit_code {
        EXIT_GOOD = 0,
        EXIT_DAMAGE = 1, /* some records are damaged, or files unreadable */
        EXIT_USAGE = 2,
        EXIT_SOURCE = 3, /* the source cannot be listed */
};

/*
 * Options that every command has; they are children of its own parser, whose input is struct
 * common. running_argp is for commands that start no daemon.
 */
struct common {
        const char *socket;
        bool is_private, verbose;
        char **filters; /* arguments for a daemon of its own: "--include=GLOB" */
        size_t filter_count;
};

/* Gives back what the options have allocated. */
void common_deinit(struct common *common);

extern const struct argp common_argp, running_argp;

/* One subcommand. */
struct command {
        const char *name, *summary;
        int (*run)(int argc, char **argv); /* argv[0] is "headrace NAME"; returns an exit code */
};

int command_ls(int argc, char **argv);
int command_dump(int argc, char **argv);
int command_source(int argc, char **argv);
int command_status(int argc, char **argv);
int command_verify(int argc, char **argv);

/*
 * "headrace: THING: REASON" and, indented below it, a way out (NULL: none). Clears the progress
 * bar.
 */
void complain(const char *thing, const char *reason, const char *way_out);

/* For a parser of argp: the one URL that the command wants. ARGP_ERR_UNKNOWN: the key is another. */
error_t command_parse_url(int key, char *argument, struct argp_state *state, const char **url);

/*
 * The URL as it may be shown: without user, password and query; a path as it was typed. NULL: no
 * memory. The caller frees.
 */
char *command_shown(const char *url);

/* Opens the URL. EXIT_GOOD or, after a complaint, another code. */
int command_open(const struct common *common, const char *url,
                 struct hr_connection **ret_connection);

/* Complains about a call that did not work, and says with which code to end. */
int command_failed(const struct hr_connection *connection, const char *thing, int r);

/*
 * Calls a method whose answer has a list under that name, page by page; on_row is called for each
 * element. params is taken. 0, or what hr_call() says.
 */
int command_pages(struct hr_connection *connection, const char *method, const char *list,
                  json_t *take_params, void (*on_row)(void *userdata, const json_t *row),
                  void *userdata);

/* Parameters that name the connection's source and the runs below its prefix. */
json_t *command_source_params(const struct hr_connection *connection);

/*
 * Waits, with a bar, until every file of the source is read as far as it goes. A daemon that has
 * been running looks at storage once more: nobody may have asked it for long. 0, or what hr_call()
 * says.
 */
int command_wait_loaded(struct hr_connection *connection, const char *shown);

/*
 * The URL may lie below the daemon's source: complains if no run does. EXIT_GOOD or EXIT_SOURCE.
 */
int command_check_prefix(struct hr_connection *connection, const char *shown);

/* True if what was opened is a list of sources: hr_source() is NULL then. */
bool command_is_list(const struct hr_connection *connection);

/* True for the row of `sources` that stands for what was opened: a private daemon has no other. */
bool command_is_source(const struct hr_connection *connection, const json_t *row);

/* The name of a run or path of the source, relative to what was opened. Borrowed. */
const char *command_below_prefix(const struct hr_connection *connection, const char *name,
                                 bool is_run);

/* Of a file's state: it is settled because it cannot be read. */
bool command_is_unreadable(const char *state);

/* "data CRC at offset 116, 39 bytes skipped" of a damaged place as docs/PROTOCOL.md has it. */
void command_place_text(const json_t *place, char *ret_text, size_t size);

/*
 * "2 data CRC, 1 zeros" of an object with numbers of damaged places by reason. The caller frees it;
 * NULL: no memory.
 */
char *command_reasons(const json_t *reasons);

/* Prints a name of storage on standard error in a complaint: "headrace: PATH: text". */
void complain_file(const char *path, const char *text);

/*
 * Names on standard error what is damaged or cannot be read of what was opened. Returns EXIT_GOOD
 * or EXIT_DAMAGE, or after a complaint another code. runs are globs relative to what was opened,
 * NULL: all.
 */
int command_name_damage(struct hr_connection *connection, const char *url, const char *const *runs);
