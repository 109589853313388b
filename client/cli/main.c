/* SPDX-License-Identifier: Apache-2.0 */
/* headrace: looks for the subcommand; each parses its own arguments. */
#include <errno.h>
#include <locale.h>
#include <signal.h>
#include <string.h>

#include "client/cli/command.h"
#include "common/base.h"
#include "common/standard_fds.h"

static const struct command commands[] = {
        { "ls", "list the runs below a URL", command_ls },
        { "dump", "write every record below a URL as JSON lines or CSV", command_dump },
        { "verify", "name every damaged place below a URL", command_verify },
        { "source", "add a source to the running daemon, or remove one", command_source },
        { "status", "say what the running daemon does", command_status },
};

const char *argp_program_version = "headrace " HEADRACE_VERSION;

static const char documentation[] =
        "Reads TensorBoard event files below a URL or directory, through a headraced that runs or "
        "one of its own.\v"
        "Commands:\n"
        "  ls URL      list the runs below a URL\n"
        "  dump URL    write every record below a URL as JSON lines or CSV\n"
        "  verify URL  name every damaged place below a URL\n"
        "  source      add a source to the running daemon, or remove one\n"
        "  status      say what the running daemon does\n"
        "\n"
        "`headrace COMMAND --help' says more.  Exit codes: 0 all good, 1 some records are damaged "
        "or files unreadable "
        "(named on standard error), 2 usage, 3 the source cannot be listed.";

static const struct command *find_command(const char *name) {
        for (size_t i = 0; i < ARRAY_SIZE(commands); i++) {
                if (strcmp(commands[i].name, name) == 0)
                        return &commands[i];
        }
        return NULL;
}

struct choice {
        const struct command *command;
        int first; /* argument of the command's own name */
};

static error_t parse(int key, char *argument, struct argp_state *state) {
        struct choice *choice = state->input;

        switch (key) {
        case ARGP_KEY_ARG:
                choice->command = find_command(argument);
                if (!choice->command)
                        argp_error(state, "%s: no such command", argument);
                choice->first = state->next - 1;
                state->next = state->argc; /* the rest is the command's */
                return 0;
        case ARGP_KEY_NO_ARGS:
                argp_usage(state);
                return 0;
        default:
                return ARGP_ERR_UNKNOWN;
        }
}

/* What argp prints (--help, --version) must not be lost in silence, either. */
static void close_output(void) {
        if (fclose(stdout) != 0 && errno != EPIPE) {
                complain("standard output", strerror(errno), NULL);
                _exit(EXIT_DAMAGE);
        }
}

int main(int argc, char **argv) {
        static const struct argp argp = { .parser = parse,
                                          .args_doc = "COMMAND [ARGUMENTS]",
                                          .doc = documentation };
        struct choice choice = { 0 };
        char name[64];

        if (standard_fds_fill() < 0)
                return EXIT_SOURCE;
        /*
         * A reader that leaves is noticed where it is written to, so that the bar and the daemon go
         * first.
         */
        signal(SIGPIPE, SIG_IGN);
        atexit(close_output);
        argp_err_exit_status = EXIT_USAGE;
        argp_parse(&argp, argc, argv, ARGP_IN_ORDER, NULL, &choice);
        if (!choice.command)
                return EXIT_USAGE;
        snprintf(name, sizeof(name), "headrace %s", choice.command->name);
        argv[choice.first] = name;
        return choice.command->run(argc - choice.first, argv + choice.first);
}
