/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A directory below TMPDIR has a name that anyone can take first: it is used only if it is a real
 * directory, ours, and closed to others. The daemon and a client check the same, so neither can be
 * lured into another user's socket.
 */
#include "common/socket_path.h"

#include <errno.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/un.h>

#include "common/base.h"

static const char *environment(const char *name) {
        const char *value = getenv(name);

        return value && value[0] ? value : NULL;
}

static int check_private_directory(const char *directory) {
        struct stat info;

        if (lstat(directory, &info) < 0)
                return -errno;
        if (!S_ISDIR(info.st_mode) || info.st_uid != geteuid() || (info.st_mode & 077))
                return -EPERM;
        return 0;
}

static int runtime_directory(char **ret_directory) {
        const char *runtime = environment("XDG_RUNTIME_DIR");

        /* The XDG specification has relative paths ignored. */
        if (!runtime || runtime[0] != '/')
                return -ENOENT;
        return asprintf(ret_directory, "%s/headrace", runtime) < 0 ? -ENOMEM : 0;
}

static int temporary_directory(char **ret_directory) {
        const char *temporary = environment("TMPDIR");

        if (asprintf(ret_directory, "%s/headrace-%u", temporary ? temporary : "/tmp",
                     (unsigned)geteuid()) < 0)
                return -ENOMEM;
        return 0;
}

static int socket_below(const char *directory, char **ret_path) {
        return asprintf(ret_path, "%s/headrace.sock", directory) < 0 ? -ENOMEM : 0;
}

static int check_size(const char *path) {
        return strlen(path) < sizeof(((struct sockaddr_un *)NULL)->sun_path) ? 0 : -ENAMETOOLONG;
}

static int make_directory(const char *directory, mode_t mode) {
        return mkdir(directory, mode) < 0 && errno != EEXIST ? -errno : 0;
}

/*
 * The directory to listen in, made and checked. *ret_directory is set as soon as it is known, for
 * the message.
 */
static int listen_directory(char **ret_directory) {
        int r;

        if (geteuid() == 0) {
                *ret_directory = strdup("/run/headrace");
                return *ret_directory ? make_directory(*ret_directory, 0755) : -ENOMEM;
        }
        r = runtime_directory(ret_directory);
        if (r != -ENOENT)
                return r < 0 ? r : make_directory(*ret_directory, 0700);
        r = temporary_directory(ret_directory);
        if (r < 0 || (r = make_directory(*ret_directory, 0700)) < 0)
                return r;
        return check_private_directory(*ret_directory);
}

int socket_path_listen(const char *given, char **ret_path, char **ret_directory) {
        CLEANUP(freep) char *directory = NULL;
        CLEANUP(freep) char *path = NULL;
        int r = 0;

        if (given) {
                path = strdup(given);
                r = path ? 0 : -ENOMEM;
        } else if ((r = listen_directory(&directory)) == 0) {
                r = socket_below(directory, &path);
        }
        if (ret_directory)
                *ret_directory = steal_pointer(&directory);
        if (r < 0)
                return r;
        MUST(path);
        if ((r = check_size(path)) < 0)
                return r;
        *ret_path = steal_pointer(&path);
        return 0;
}

static int add_path(struct socket_path *paths, size_t *count, enum socket_place place,
                    const char *path) {
        char *copy;

        for (size_t i = 0; i < *count; i++) {
                if (strcmp(paths[i].path, path) == 0)
                        return 0;
        }
        copy = strdup(path);
        if (!copy)
                return -ENOMEM;
        paths[(*count)++] = (struct socket_path){ place, copy };
        return 0;
}

static int add_below(struct socket_path *paths, size_t *count, const char *directory) {
        CLEANUP(freep) char *path = NULL;
        int r = socket_below(directory, &path);

        return r < 0 ? r : add_path(paths, count, SOCKET_USER, path);
}

static int add_user_paths(struct socket_path *paths, size_t *count) {
        CLEANUP(freep) char *runtime = NULL;
        CLEANUP(freep) char *temporary = NULL;
        int r = runtime_directory(&runtime);

        if (r == 0)
                r = add_below(paths, count, runtime);
        if (r < 0 && r != -ENOENT)
                return r;
        r = temporary_directory(&temporary);
        if (r < 0)
                return r;
        return check_private_directory(temporary) < 0 ? 0 : add_below(paths, count, temporary);
}

int socket_path_search(const char *given, struct socket_path *ret_paths, size_t *ret_count) {
        const char *from_environment = environment("HEADRACE_SOCKET");
        size_t count = 0;
        int r = 0;

        if (given) {
                r = add_path(ret_paths, &count, SOCKET_GIVEN, given);
        } else {
                if (from_environment)
                        r = add_path(ret_paths, &count, SOCKET_ENVIRONMENT, from_environment);
                if (r == 0)
                        r = add_user_paths(ret_paths, &count);
                if (r == 0)
                        r = add_path(ret_paths, &count, SOCKET_SYSTEM, SOCKET_PATH_SYSTEM);
        }
        if (r < 0)
                socket_paths_clear(ret_paths, count);
        else
                *ret_count = count;
        return r;
}

void socket_paths_clear(struct socket_path *paths, size_t count) {
        for (size_t i = 0; i < count; i++)
                free(paths[i].path);
}
