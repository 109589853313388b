/* SPDX-License-Identifier: Apache-2.0 */
#include "client/lib/helper.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include "common/base.h"
#include "common/private_source.h"

#define HELPER_END_MS 5000

/* The program beside the one that runs; NULL where there is none. */
static char *beside_this_program(void) {
        char path[4096];
        ssize_t size = readlink("/proc/self/exe", path, sizeof(path) - sizeof("headraced"));
        char *slash;

        if (size < 0)
                return NULL;
        path[size] = '\0';
        slash = strrchr(path, '/');
        if (!slash)
                return NULL;
        memcpy(slash + 1, "headraced", sizeof("headraced"));
        return access(path, X_OK) == 0 ? strdup(path) : NULL;
}

/* The one that was installed with this library, which is in lib/ or lib/ARCHITECTURE/ beside bin/. */
static char *beside_this_library(void) {
        static const char *const ways[] = { "../bin/headraced", "../../bin/headraced" };
        static const char mark = 0;
        Dl_info library;
        int size;

        /* A relative path may lead elsewhere by now. */
        if (!dladdr(&mark, &library) || library.dli_fname[0] != '/')
                return NULL;
        size = (int)(strrchr(library.dli_fname, '/') + 1 - library.dli_fname);
        for (size_t i = 0; i < ARRAY_SIZE(ways); i++) {
                CLEANUP(freep) char *path = NULL;

                if (asprintf(&path, "%.*s%s", size, library.dli_fname, ways[i]) < 0)
                        return NULL;
                if (access(path, X_OK) == 0)
                        return steal_pointer(&path);
        }
        return NULL;
}

static char *find_program(const char *given) {
        const char *environment = getenv("HEADRACE_DAEMON");
        char *found;

        if (given)
                return strdup(given);
        if (environment && environment[0])
                return strdup(environment);
        if ((found = beside_this_program()) || (found = beside_this_library()))
                return found;
        return strdup("headraced");
}

/*
 * Standard input and output belong to the program; standard error stays, so that the daemon can say
 * why it will not start.
 */
static int spawn(const char *program, char **arguments, char **environment, int socket_fd,
                 pid_t *ret_pid) {
        posix_spawn_file_actions_t actions;
        posix_spawnattr_t attributes;
        sigset_t no_signals;
        int error;

        sigemptyset(&no_signals);
        if ((error = posix_spawn_file_actions_init(&actions)))
                return -error;
        if ((error = posix_spawnattr_init(&attributes))) {
                posix_spawn_file_actions_destroy(&actions);
                return -error;
        }
        if (!(error = posix_spawn_file_actions_addopen(&actions, 0, "/dev/null", O_RDONLY, 0)) &&
            !(error = posix_spawn_file_actions_addopen(&actions, 1, "/dev/null", O_WRONLY, 0)) &&
            /* clears close-on-exec */
            !(error = posix_spawn_file_actions_adddup2(&actions, socket_fd, socket_fd)) &&
            !(error = posix_spawnattr_setsigmask(&attributes, &no_signals)) &&
            !(error = posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGMASK)))
                error = posix_spawnp(ret_pid, program, &actions, &attributes, arguments,
                                     environment);
        posix_spawn_file_actions_destroy(&actions);
        posix_spawnattr_destroy(&attributes);
        return -error;
}

/*
 * Our environment and the URL, which may hold a password: a command line can be read by everybody.
 */
static char **environment_with(char *variable) {
        size_t count = 0, at = 0;
        char **copy;

        while (environ[count])
                count++;
        copy = calloc(count + 2, sizeof(*copy));
        if (!copy)
                return NULL;
        for (size_t i = 0; i < count; i++)
                if (strncmp(environ[i], PRIVATE_SOURCE_VARIABLE "=",
                            strlen(PRIVATE_SOURCE_VARIABLE "=")) != 0)
                        copy[at++] = environ[i];
        copy[at] = variable;
        return copy;
}

static int start(const char *program, int socket_fd, const char *url, const char *const *arguments,
                 pid_t *ret_pid) {
        CLEANUP(freep) char **argv = NULL, **environment = NULL;
        CLEANUP(freep) char *variable = NULL;
        char option[32];
        size_t count = 0, at = 0;

        while (arguments && arguments[count])
                count++;
        if (asprintf(&variable, "%s=%s", PRIVATE_SOURCE_VARIABLE, url) < 0)
                return -ENOMEM;
        argv = calloc(count + 4, sizeof(*argv));
        environment = environment_with(variable);
        if (!argv || !environment)
                return -ENOMEM;
        snprintf(option, sizeof(option), "--socket-fd=%d", socket_fd);
        argv[at++] = (char *)(uintptr_t)program;
        argv[at++] = (char *)(uintptr_t) "--private";
        argv[at++] = option;
        for (size_t i = 0; i < count; i++)
                argv[at++] = (char *)(uintptr_t)arguments[i];
        return spawn(program, argv, environment, socket_fd, ret_pid);
}

int helper_start(const char *given, const char *url, const char *const *arguments, int *ret_fd,
                 pid_t *ret_pid, char **ret_program) {
        CLEANUP(close_fdp) int ours = -1;
        CLEANUP(close_fdp) int theirs = -1;
        char *program = find_program(given);
        int pair[2], r;

        if (!program)
                return -ENOMEM;
        *ret_program = program;
        if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) < 0)
                return -errno;
        ours = pair[0];
        /* behind the standard ones, which the child replaces */
        theirs = fcntl(pair[1], F_DUPFD_CLOEXEC, 3);
        r = theirs < 0 ? -errno : start(program, theirs, url, arguments, ret_pid);
        close(pair[1]);
        if (r == 0)
                *ret_fd = steal_fd(&ours);
        return r;
}

int helper_end(pid_t pid) {
        CLEANUP(close_fdp) int pid_fd = (int)syscall(SYS_pidfd_open, pid, 0);
        struct pollfd poll_fd = { .fd = pid_fd, .events = POLLIN };
        int n, status = 0;

        /* A kernel without pidfd waits below as long as it takes. */
        if (pid_fd >= 0) {
                do
                        n = poll(&poll_fd, 1, HELPER_END_MS);
                while (n < 0 && errno == EINTR);
                if (n == 0)
                        kill(pid, SIGKILL);
        }
        while ((n = waitpid(pid, &status, 0)) < 0 && errno == EINTR)
                ;
        return n == pid && WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}
