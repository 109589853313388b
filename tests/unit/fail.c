/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One counter for all of them. Which call is the n-th may differ from run to run where threads are
 * at work; that one fails does not.
 */
#include "tests/unit/fail.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

static atomic_ullong left; /* calls until the one that fails; 0: none will */
static atomic_bool happened;
static _Atomic(const char *) failed_name;
static bool this_thread_only;
static _Thread_local bool is_this_thread;
static _Thread_local unsigned in_check; /* Check's own calls */

void fail_begin(uint64_t n, enum fail_scope scope) {
        this_thread_only = scope == FAIL_THIS_THREAD;
        is_this_thread = true;
        atomic_store(&happened, false);
        atomic_store(&failed_name, "nothing");
        atomic_store(&left, n);
}

bool fail_happened(void) {
        return atomic_load(&happened);
}

const char *fail_name(void) {
        return atomic_load(&failed_name);
}

bool fail_end(void) {
        atomic_store(&left, 0);
        is_this_thread = false;
        return fail_happened();
}

static bool is_it(const char *name, int error) {
        unsigned long long now = atomic_load(&left);

        if (now == 0 || in_check || (this_thread_only && !is_this_thread))
                return false;
        while (now > 0 && !atomic_compare_exchange_weak(&left, &now, now - 1))
                ;
        if (now != 1)
                return false;
        atomic_store(&failed_name, name);
        atomic_store(&happened, true);
        errno = error;
        return true;
}

/* Check notes where a test is, and allocates for that. */
void __real__mark_point(const char *file, int line);
void __wrap__mark_point(const char *file, int line);

void __wrap__mark_point(const char *file, int line) {
        in_check++;
        __real__mark_point(file, line);
        in_check--;
}

#define WRAP(type, name, parameters, arguments, failure, error) \
        type __real_##name parameters; \
        type __wrap_##name parameters; \
\
        type __wrap_##name parameters { \
                if (is_it(#name, error)) \
                        return failure; \
                return __real_##name arguments; \
        }

WRAP(void *, malloc, (size_t size), (size), NULL, ENOMEM)
WRAP(void *, calloc, (size_t count, size_t size), (count, size), NULL, ENOMEM)
WRAP(void *, realloc, (void *memory, size_t size), (memory, size), NULL, ENOMEM)
WRAP(void *, reallocarray, (void *memory, size_t count, size_t size), (memory, count, size), NULL,
     ENOMEM)
WRAP(void *, aligned_alloc, (size_t alignment, size_t size), (alignment, size), NULL, ENOMEM)
WRAP(char *, strdup, (const char *text), (text), NULL, ENOMEM)
WRAP(char *, strndup, (const char *text, size_t size), (text, size), NULL, ENOMEM)
WRAP(int, vasprintf, (char **ret_text, const char *format, va_list arguments),
     (ret_text, format, arguments), -1, ENOMEM)
WRAP(int, memfd_create, (const char *name, unsigned flags), (name, flags), -1, EMFILE)
WRAP(void *, mmap, (void *address, size_t size, int protection, int flags, int fd, off_t offset),
     (address, size, protection, flags, fd, offset), MAP_FAILED, ENOMEM)
WRAP(int, ftruncate, (int fd, off_t size), (fd, size), -1, ENOSPC)
WRAP(int, fallocate, (int fd, int mode, off_t offset, off_t size), (fd, mode, offset, size), -1,
     ENOSPC)
WRAP(int, socket, (int domain, int type, int protocol), (domain, type, protocol), -1, EMFILE)
WRAP(int, bind, (int fd, const struct sockaddr *address, socklen_t size), (fd, address, size), -1,
     EADDRINUSE)
WRAP(int, listen, (int fd, int backlog), (fd, backlog), -1, EADDRINUSE)
WRAP(int, connect, (int fd, const struct sockaddr *address, socklen_t size), (fd, address, size),
     -1, ECONNREFUSED)
WRAP(int, accept4, (int fd, struct sockaddr *address, socklen_t *size, int flags),
     (fd, address, size, flags), -1, EMFILE)
WRAP(ssize_t, sendmsg, (int fd, const struct msghdr *message, int flags), (fd, message, flags), -1,
     EPIPE)
WRAP(ssize_t, recvmsg, (int fd, struct msghdr *message, int flags), (fd, message, flags), -1,
     ECONNRESET)
WRAP(ssize_t, recv, (int fd, void *bytes, size_t size, int flags), (fd, bytes, size, flags), -1,
     ECONNRESET)
WRAP(ssize_t, read, (int fd, void *bytes, size_t size), (fd, bytes, size), -1, EIO)
WRAP(ssize_t, pread, (int fd, void *bytes, size_t size, off_t offset), (fd, bytes, size, offset),
     -1, EIO)
WRAP(int, fstat, (int fd, struct stat *status), (fd, status), -1, EIO)
WRAP(int, flock, (int fd, int operation), (fd, operation), -1, EIO)
WRAP(int, rename, (const char *from, const char *to), (from, to), -1, EACCES)
WRAP(DIR *, fdopendir, (int fd), (fd), NULL, ENOMEM)
WRAP(FILE *, fopen, (const char *path, const char *mode), (path, mode), NULL, EMFILE)
WRAP(ssize_t, getrandom, (void *bytes, size_t size, unsigned flags), (bytes, size, flags), -1,
     EAGAIN)

/* Those whose last argument may be missing, and the ones that return an errno. */

int __wrap_asprintf(char **ret_text, const char *format, ...) __attribute__((format(printf, 2, 3)));

int __wrap_asprintf(char **ret_text, const char *format, ...) {
        va_list arguments;
        int r;

        if (is_it("asprintf", ENOMEM))
                return -1;
        va_start(arguments, format);
        r = __real_vasprintf(ret_text, format, arguments);
        va_end(arguments);
        return r;
}

int __real_fcntl(int fd, int command, ...);
int __wrap_fcntl(int fd, int command, ...);

int __wrap_fcntl(int fd, int command, ...) {
        va_list arguments;
        void *argument;

        va_start(arguments, command);
        argument = va_arg(arguments, void *);
        va_end(arguments);
        return is_it("fcntl", EMFILE) ? -1 : __real_fcntl(fd, command, argument);
}

int __real_open(const char *path, int flags, ...);
int __wrap_open(const char *path, int flags, ...);

int __wrap_open(const char *path, int flags, ...) {
        va_list arguments;
        int mode;

        va_start(arguments, flags);
        mode = va_arg(arguments, int);
        va_end(arguments);
        return is_it("open", EMFILE) ? -1 : __real_open(path, flags, mode);
}

int __real_openat(int directory, const char *path, int flags, ...);
int __wrap_openat(int directory, const char *path, int flags, ...);

int __wrap_openat(int directory, const char *path, int flags, ...) {
        va_list arguments;
        int mode;

        va_start(arguments, flags);
        mode = va_arg(arguments, int);
        va_end(arguments);
        return is_it("openat", EMFILE) ? -1 : __real_openat(directory, path, flags, mode);
}

int __real_pthread_create(pthread_t *thread, const pthread_attr_t *attributes,
                          void *(*start)(void *), void *argument);
int __wrap_pthread_create(pthread_t *thread, const pthread_attr_t *attributes,
                          void *(*start)(void *), void *argument);

int __wrap_pthread_create(pthread_t *thread, const pthread_attr_t *attributes,
                          void *(*start)(void *), void *argument) {
        return is_it("pthread_create", EAGAIN)
                       ? EAGAIN
                       : __real_pthread_create(thread, attributes, start, argument);
}
