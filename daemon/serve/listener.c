/* SPDX-License-Identifier: Apache-2.0 */
/*
 * libuv's pipes would set other modes, unlink a successor's socket and cannot pass descriptors:
 * bind and accept are our own, and libuv only polls. The lock file is never removed: between an
 * unlink and an open two daemons could hold two locks of one name.
 */
#include "daemon/serve/listener.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <stdarg.h>
#include <string.h>
#include <sys/file.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>

#include "common/base.h"
#include "daemon/core/log.h"

#define ACCEPT_MOST 64 /* in one turn of the loop */
#define SOCKET_MODE 0660
#define SOCKET_GROUP "headrace"

struct listener {
        uv_poll_t poll;
        int fd, lock_fd;
        /* given up for a moment to turn away a client when there are no descriptors left */
        int spare_fd;
        char *path;
        dev_t device;
        ino_t inode;
        void (*on_connection)(void *userdata, int take_fd, uid_t uid, pid_t pid);
        void *userdata;
        void (*on_closed)(void *userdata);
        void *closed_userdata;
};

static int explain(char **ret_error, int r, const char *format, ...)
        __attribute__((format(printf, 3, 4)));

static int explain(char **ret_error, int r, const char *format, ...) {
        va_list arguments;

        va_start(arguments, format);
        if (vasprintf(ret_error, format, arguments) < 0)
                *ret_error = NULL;
        va_end(arguments);
        return r;
}

static void listener_free(struct listener *listener) {
        close_fdp(&listener->fd);
        close_fdp(&listener->lock_fd);
        close_fdp(&listener->spare_fd);
        free(listener->path);
        free(listener);
}

static void listener_freep(struct listener **listener) {
        if (*listener)
                listener_free(*listener);
}

/* The pid that the holder of the lock wrote into it, 0 if there is none. */
static long lock_holder(int lock_fd) {
        char text[32];
        ssize_t size = pread(lock_fd, text, sizeof(text) - 1, 0);

        if (size <= 0)
                return 0;
        text[size] = 0;
        return strtol(text, NULL, 10);
}

static int refuse_running(const struct listener *listener, char **ret_error) {
        long pid = lock_holder(listener->lock_fd);

        if (pid > 0)
                return explain(ret_error, LISTENER_E_RUNNING,
                               "a daemon is already running on %s (pid %ld)", listener->path, pid);
        return explain(ret_error, LISTENER_E_RUNNING, "a daemon is already running on %s",
                       listener->path);
}

static int take_lock(struct listener *listener, char **ret_error) {
        CLEANUP(freep) char *path = NULL;

        if (asprintf(&path, "%s.lock", listener->path) < 0) {
                path = NULL;
                return -ENOMEM;
        }
        listener->lock_fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK,
                                 0600);
        if (listener->lock_fd < 0) {
                int error = errno;

                return explain(ret_error, -error, "cannot make the socket's lock %s: %s", path,
                               strerror(error));
        }
        if (flock(listener->lock_fd, LOCK_EX | LOCK_NB) == 0) {
                if (ftruncate(listener->lock_fd, 0) == 0)
                        dprintf(listener->lock_fd, "%ld\n", (long)getpid());
                return 0;
        }
        if (errno == EWOULDBLOCK)
                return refuse_running(listener, ret_error);
        return explain(ret_error, -errno, "cannot lock %s: %s", path, strerror(errno));
}

/* A name beside the path, short enough for an address if the path is. */
static int temporary_address(const char *path, struct sockaddr_un *ret_address) {
        const char *base = strrchr(path, '/');
        int directory = base ? (int)(base + 1 - path) : 0;
        int size;

        *ret_address = (struct sockaddr_un){ .sun_family = AF_UNIX };
        size = snprintf(ret_address->sun_path, sizeof(ret_address->sun_path), "%.*s.hr%ld",
                        directory, path, (long)getpid());
        return size < (int)sizeof(ret_address->sun_path) ? 0 : -ENAMETOOLONG;
}

/*
 * The system's daemon lets in who is in the group of that name, where there is one. Where it may not
 * be given to it, the socket stays root's.
 */
static void give_to_group(const char *path) {
        const struct group *group = geteuid() == 0 ? getgrnam(SOCKET_GROUP) : NULL;

        if (group && chown(path, (uid_t)-1, group->gr_gid) < 0)
                log_warning("cannot give the socket to its group", "group=%s reason=%s",
                            SOCKET_GROUP, strerror(errno));
}

/*
 * A bound socket with its mode, under a temporary name. The lock is ours, so a file of that name is
 * a dead one's. Until chmod the mode is what umask leaves of 0777, but nobody can connect before
 * listen().
 */
static int bind_temporary(struct listener *listener, const struct sockaddr_un *address) {
        struct stat status;

        unlink(address->sun_path);
        if (bind(listener->fd, (const struct sockaddr *)address, sizeof(*address)) < 0)
                return -errno;
        give_to_group(address->sun_path);
        if (chmod(address->sun_path, SOCKET_MODE) < 0 || stat(address->sun_path, &status) < 0 ||
            listen(listener->fd, 128) < 0) {
                int error = -errno;

                unlink(address->sun_path);
                return error;
        }
        listener->device = status.st_dev;
        listener->inode = status.st_ino;
        return 0;
}

/*
 * Only a socket may be replaced by the rename: a path that was mistyped must not cost somebody a
 * file.
 */
static int check_place(const char *path) {
        struct stat status;

        if (lstat(path, &status) < 0)
                return errno == ENOENT ? 0 : -errno;
        return S_ISSOCK(status.st_mode) ? 0 : -EEXIST;
}

static int bind_path(struct listener *listener) {
        struct sockaddr_un address;
        int r = strlen(listener->path) < sizeof(address.sun_path) ? 0 : -ENAMETOOLONG;

        if (!r)
                r = temporary_address(listener->path, &address);
        if (!r)
                r = check_place(listener->path);
        if (r)
                return r;
        listener->fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
        if (listener->fd < 0)
                return -errno;
        r = bind_temporary(listener, &address);
        if (!r && rename(address.sun_path, listener->path) < 0) {
                r = -errno;
                unlink(address.sun_path);
        }
        return r;
}

static void take_connection(struct listener *listener, int take_fd) {
        CLEANUP(close_fdp) int fd = take_fd;
        struct ucred peer;
        socklen_t size = sizeof(peer);

        if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &size) == 0)
                listener->on_connection(listener->userdata, steal_fd(&fd), peer.uid, peer.pid);
}

/*
 * Without this a client that waits would keep the poll handle firing for as long as there are no
 * descriptors.
 */
static void turn_away(struct listener *listener) {
        CLEANUP(close_fdp) int fd = -1;

        close_fdp(&listener->spare_fd);
        fd = accept4(listener->fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
        close_fdp(&fd);
        fd = -1;
        listener->spare_fd = open("/dev/null", O_RDONLY | O_CLOEXEC);
        log_warning("client turned away", "reason=\"no descriptors left\"");
}

static void on_poll(uv_poll_t *poll, int status, int events) {
        struct listener *listener = poll->data;

        (void)events;
        if (status < 0)
                return;
        for (int i = 0; i < ACCEPT_MOST; i++) {
                int fd = accept4(listener->fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);

                if (fd >= 0)
                        take_connection(listener, fd);
                else if (errno == EMFILE || errno == ENFILE)
                        turn_away(listener);
                else if (errno != EINTR && errno != ECONNABORTED)
                        return;
        }
}

static int open_socket(struct listener *listener, char **ret_error) {
        int r = take_lock(listener, ret_error);

        if (r)
                return r;
        r = bind_path(listener);
        if (r == -EEXIST)
                return explain(ret_error, r,
                               "cannot listen on %s: the path exists and is no socket",
                               listener->path);
        if (r)
                return explain(ret_error, r, "cannot listen on %s: %s", listener->path,
                               strerror(-r));
        return 0;
}

/* Removes the path if it is still our socket, and not a successor's or somebody's file. */
static void unlink_own(const struct listener *listener) {
        struct stat status;

        if (lstat(listener->path, &status) == 0 && status.st_dev == listener->device &&
            status.st_ino == listener->inode)
                unlink(listener->path);
}

int listener_new(uv_loop_t *loop, const char *path,
                 void (*on_connection)(void *userdata, int take_fd, uid_t uid, pid_t pid),
                 void *userdata, struct listener **ret_listener, char **ret_error) {
        CLEANUP(listener_freep) struct listener *listener = calloc(1, sizeof(*listener));
        int r;

        *ret_error = NULL;
        if (!listener)
                return -ENOMEM;
        listener->fd = listener->lock_fd = listener->spare_fd = -1;
        listener->on_connection = on_connection;
        listener->userdata = userdata;
        listener->path = strdup(path);
        if (!listener->path)
                return -ENOMEM;
        r = open_socket(listener, ret_error);
        if (r)
                return r;
        listener->spare_fd = open("/dev/null", O_RDONLY | O_CLOEXEC);
        r = uv_poll_init(loop, &listener->poll, listener->fd);
        if (r) {
                unlink_own(listener);
                return r;
        }
        listener->poll.data = listener;
        uv_poll_start(&listener->poll, UV_READABLE, on_poll);
        *ret_listener = steal_pointer(&listener);
        return 0;
}

static void on_handle_closed(uv_handle_t *handle) {
        struct listener *listener = handle->data;
        void (*on_closed)(void *userdata) = listener->on_closed;
        void *userdata = listener->closed_userdata;

        listener_free(listener);
        on_closed(userdata);
}

void listener_close(struct listener *listener, void (*on_closed)(void *userdata), void *userdata) {
        if (!listener) {
                on_closed(userdata);
                return;
        }
        unlink_own(listener);
        listener->on_closed = on_closed;
        listener->closed_userdata = userdata;
        uv_close((uv_handle_t *)&listener->poll, on_handle_closed);
}
