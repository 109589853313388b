/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Files below a directory, or one file. Every system call that may wait for storage is made on a
 * thread of the pool; a file system that hangs costs threads, never the loop.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "common/base.h"
#include "common/source_url.h"
#include "daemon/core/log.h"
#include "daemon/store/failure.h"
#include "daemon/store/types.h"
#include "daemon/store/walk.h"
#include "daemon/store/work_pool.h"

#define STORE_FILE_WINDOW_START 16
/* a listing without any answer of the file system for so long, twice, has failed */
#define STORE_FILE_WATCH_MS 30000

static const struct work_pool_options pool_options = {
        .threads_min = 8,
        .threads_max = 256,
        .wait_ns = 1000000,
        .idle_ns = 10000000000,
};

struct store_file {
        struct store store;
        struct work_pool *pool;
        unsigned busy; /* reads and walks that threads have in hands */
        struct store_list *list;
        struct notify *notify; /* NULL: nobody has listened so far */
        bool told_mount;
        uv_timer_t watch; /* runs while a listing does */
        uint64_t watched_progress;
        bool closing;
        unsigned open_handles;
        void (*on_closed)(void *userdata);
        void *userdata;
};

struct store_list {
        struct store_file *file;
        struct walk *walk;
        struct store_list_callbacks callbacks;
        void *userdata;
};

struct store_read {
        struct work work;
        struct store_file *file;
        char *path;
        uint64_t offset, size_bytes;
        uint8_t *buffer;
        struct store_read_result result;
        /* NULL: cancelled */
        void (*on_done)(void *userdata, const struct store_read_result *result);
        void (*on_released)(void *userdata);
        void *userdata;
};

/* ---- Reading ---- */

/* On a thread, as all up to read_run(). */
static int read_bytes(struct store_read *read, int fd) {
        struct store_read_result *result = &read->result;

        while (result->size_bytes < read->size_bytes) {
                ssize_t got = pread(fd, read->buffer + result->size_bytes,
                                    read->size_bytes - result->size_bytes,
                                    (off_t)(read->offset + result->size_bytes));

                if (got < 0 && errno == EINTR)
                        continue;
                if (got < 0)
                        return -errno;
                result->size_bytes += (uint64_t)got;
                if (got == 0 || read->offset + result->size_bytes >= result->total_bytes)
                        break;
        }
        return 0;
}

/*
 * The source may be the file itself; its only row has its base name, which then stands twice in the
 * path.
 */
static int open_file(const char *path, int *ret_fd) {
        int fd = open(path, O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);

        if (fd < 0 && errno == ENOTDIR) {
                const char *name = strrchr(path, '/');
                size_t size = strlen(name), above = (size_t)(name - path);

                if (above > size && memcmp(name - size, name, size) == 0) {
                        CLEANUP(freep) char *file = strndup(path, above);

                        fd = file ? open(file, O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC) : -1;
                }
        }
        if (fd < 0)
                return -errno;
        *ret_fd = fd;
        return 0;
}

static int read_file(struct store_read *read) {
        CLEANUP(close_fdp) int fd = -1;
        struct stat stat_now;
        int r;

        if (read->offset > INT64_MAX - read->size_bytes)
                return 0; /* behind any end */
        r = open_file(read->path, &fd);
        if (r < 0)
                return r;
        if (fstat(fd, &stat_now) < 0)
                return -errno;
        if (!S_ISREG(stat_now.st_mode))
                return S_ISDIR(stat_now.st_mode) ? -EISDIR : -ENOTSUP;
        read->result.total_bytes = (uint64_t)stat_now.st_size;
        snprintf(read->result.tag, sizeof(read->result.tag), "%llx:%llx",
                 (unsigned long long)stat_now.st_dev, (unsigned long long)stat_now.st_ino);
        r = read_bytes(read, fd);
        /* It may have grown since it was looked at. */
        read->result.total_bytes = max_u64(
                read->result.total_bytes,
                read->result.size_bytes ? read->offset + read->result.size_bytes : 0);
        return r;
}

static void read_run(struct work *work) {
        struct store_read *read = list_owner(work, struct store_read, work);
        int r = read_file(read);

        if (r < 0)
                failure_set_errno(&read->result.failure, -r, read->path);
        else if (read->result.size_bytes == 0 && read->size_bytes > 0)
                failure_set(&read->result.failure, STORE_END, "end",
                            "Nothing at or behind offset %llu: %s",
                            (unsigned long long)read->offset, read->path);
}

static void maybe_close_pool(struct store_file *file);

static struct store_read *store_read_free(struct store_read *read) {
        struct store_file *file = read->file;

        free(read->path);
        free(read);
        file->busy--;
        maybe_close_pool(file);
        return NULL;
}

static void on_read(struct work *work) {
        struct store_read *read = list_owner(work, struct store_read, work);

        read->result.total_ns = read->result.first_byte_ns = uv_hrtime() - work->queued_ns;
        if (read->on_done && !read->file->closing)
                read->on_done(read->userdata, &read->result);
        else if (read->on_released)
                read->on_released(read->userdata);
        store_read_free(read);
}

static int file_read(struct store *store, const struct store_read_range *range,
                     void (*on_done)(void *userdata, const struct store_read_result *result),
                     void *userdata, struct store_read **ret_read) {
        struct store_file *file = (struct store_file *)store;
        struct store_read *read = calloc(1, sizeof(*read));
        int r;

        if (!read)
                return -ENOMEM;
        if (asprintf(&read->path, "%s/%.*s", store->url[1] ? store->url : "", (int)range->name_size,
                     range->name) < 0) {
                free(read);
                return -ENOMEM;
        }
        read->file = file;
        read->offset = range->offset;
        read->size_bytes = range->size_bytes;
        read->buffer = range->buffer;
        read->on_done = on_done;
        read->userdata = userdata;
        read->result.total_bytes = UINT64_MAX;
        /* Copying costs up to a nanosecond a byte; what takes longer was waited for. */
        read->work = (struct work){ .run = read_run,
                                    .done = on_read,
                                    .slow_ns = 1000000 + range->size_bytes };
        file->busy++;
        r = work_pool_submit(file->pool, &read->work);
        if (r < 0) {
                store_read_free(read);
                return r;
        }
        *ret_read = read;
        return 0;
}

static bool file_read_cancel(struct store_read *read, void (*on_released)(void *userdata),
                             void *userdata) {
        if (work_pool_withdraw(read->file->pool, &read->work)) {
                store_read_free(read);
                return true;
        }
        read->on_done = NULL;
        read->on_released = on_released;
        read->userdata = userdata;
        return false;
}

/* ---- Listing ---- */

static void list_ended(struct store_list *list) {
        uv_timer_stop(&list->file->watch);
        list->file->list = NULL;
        free(list);
}

static void on_row(void *userdata, const struct store_row *row) {
        struct store_list *list = userdata;

        list->callbacks.on_row(list->userdata, row);
}

static void on_unreadable(void *userdata, const char *directory, size_t size,
                          const struct store_failure *failure) {
        struct store_list *list = userdata;

        list->callbacks.on_unreadable(list->userdata, directory, size, failure);
}

/* Once: that a mount is slow is its kernel's doing, and there is a way around it. */
static void tell_mount(struct store_file *file) {
        const struct mount *mount = &file->store.mount;

        if (file->told_mount || mount->is_local)
                return;
        file->told_mount = true;
        if (strncmp(mount->type, "fuse", 4) != 0)
                log_info("source is on a network file system: changes are found by polling",
                         "source=%s type=%s", file->store.url, mount->type);
        else
                log_warning("source is on a FUSE mount: the kernel runs few reads of it at a time",
                            "source=%s type=%s max_background=%u way_out=\"%s%s\"", file->store.url,
                            mount->type, mount->max_background,
                            mount->native[0] ? "name the bucket itself: "
                                             : "raise max_background of the mount",
                            mount->native);
}

/* What the walk has found out of the file system. */
static void note_mount(struct store_file *file, const struct walk *walk) {
        const struct mount *mount = walk_mount(walk);

        if (!mount)
                return;
        file->store.mount = *mount;
        file->store.events = file->notify && mount->is_local ? notify_state(file->notify) : NULL;
        tell_mount(file);
}

static void on_walked(void *userdata, const struct store_failure *failure,
                      const struct store_list_counts *counts) {
        struct store_list *list = userdata;
        struct store_list ended = *list;

        note_mount(list->file, list->walk);
        list_ended(list);
        ended.callbacks.on_done(ended.userdata, failure, counts);
}

static void on_walk_released(void *owner) {
        struct store_file *file = owner;

        file->busy--;
        maybe_close_pool(file);
}

static void on_watch(uv_timer_t *watch) {
        struct store_file *file = watch->data;
        uint64_t progress = walk_progress(file->list->walk);
        struct store_failure failure;

        if (progress != file->watched_progress) {
                file->watched_progress = progress;
                return;
        }
        failure_set(&failure, STORE_TRANSIENT, "ETIMEDOUT", "The file system does not answer: %s",
                    file->store.url);
        walk_fail(file->list->walk, &failure);
}

static int file_list(struct store *store, const struct store_list_range *range,
                     const struct store_list_callbacks *callbacks, void *userdata,
                     struct store_list **ret_list) {
        static const struct store_list_callbacks own = { on_row, on_unreadable, on_walked, NULL };
        struct store_file *file = (struct store_file *)store;
        struct store_list *list;
        int r;

        if (range)
                return -ENOTSUP;
        MUST(!file->list);
        list = calloc(1, sizeof(*list));
        if (!list)
                return -ENOMEM;
        list->file = file;
        list->callbacks = *callbacks;
        list->userdata = userdata;
        r = walk_start(file->pool, file->notify, store->url, &own, list, on_walk_released, file,
                       &list->walk);
        if (r < 0) {
                free(list);
                return r;
        }
        file->busy++;
        file->list = list;
        file->watched_progress = UINT64_MAX;
        uv_timer_start(&file->watch, on_watch, STORE_FILE_WATCH_MS, STORE_FILE_WATCH_MS);
        *ret_list = list;
        return 0;
}

static void file_list_cancel(struct store_list *list) {
        struct walk *walk = list->walk;

        list_ended(list);
        walk_cancel(walk);
}

/* ---- Watching ---- */

static int file_watch(struct store *store, void (*on_change)(void *userdata, bool is_deletion),
                      void *userdata) {
        struct store_file *file = (struct store_file *)store;
        int r;

        if (!file->notify && on_change) {
                r = notify_new(file->watch.loop, 0, &file->notify);
                if (r < 0)
                        return r;
                file->open_handles++;
        }
        if (file->notify)
                notify_listen(file->notify, on_change, userdata);
        return 0;
}

/* ---- Life ---- */

static void store_file_free(struct store_file *file) {
        free(file->store.url);
        free(file->store.endpoint);
        free(file);
}

static void on_part_closed(void *userdata) {
        struct store_file *file = userdata;
        void (*on_closed)(void *) = file->on_closed;
        void *on_closed_userdata = file->userdata;

        if (--file->open_handles > 0)
                return;
        store_file_free(file);
        if (on_closed)
                on_closed(on_closed_userdata);
}

static void on_watch_closed(uv_handle_t *handle) {
        on_part_closed(handle->data);
}

static void maybe_close_pool(struct store_file *file) {
        if (!file->closing || file->busy > 0)
                return;
        if (file->notify) /* walks may have had it */
                notify_close(file->notify, on_part_closed, file);
        work_pool_close(file->pool, on_part_closed, file);
}

static void file_close(struct store *store, void (*on_closed)(void *userdata), void *userdata) {
        struct store_file *file = (struct store_file *)store;

        file->on_closed = on_closed;
        file->userdata = userdata;
        if (file->list)
                file_list_cancel(file->list);
        file->closing = true;
        if (file->notify)
                notify_listen(file->notify, NULL, NULL);
        uv_close((uv_handle_t *)&file->watch, on_watch_closed);
        maybe_close_pool(file);
}

static const struct store_operations operations = {
        .list = file_list,
        .list_cancel = file_list_cancel,
        .read = file_read,
        .read_cancel = file_read_cancel,
        .watch = file_watch,
        .close = file_close,
};

static int file_new(uv_loop_t *loop, const char *url, struct store **ret_store,
                    const char **ret_message) {
        struct store_file *file = calloc(1, sizeof(*file));
        int r;

        if (!file)
                return -ENOMEM;
        file->store.operations = &operations;
        file->store.window_start = STORE_FILE_WINDOW_START;
        file->store.reads_hang = file->store.tags_name_files = true;
        file->store.endpoint = strdup("file");
        r = file->store.endpoint ? source_url_normalize(url, &file->store.url) : -ENOMEM;
        if (r == -EINVAL)
                *ret_message = "a file:// URL has no host (or localhost) and an absolute path";
        if (r == 0)
                r = work_pool_new(loop, &pool_options, &file->pool);
        if (r < 0) {
                store_file_free(file);
                return r;
        }
        uv_timer_init(loop, &file->watch);
        file->watch.data = file;
        file->open_handles = 2; /* the timer and the pool */
        *ret_store = &file->store;
        return 0;
}

static const char *const schemes[] = { "", "file", NULL };

const struct store_type store_type_file = { .name = "file", .schemes = schemes, .new = file_new };
