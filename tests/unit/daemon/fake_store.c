/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/unit/daemon/fake_store.h"

#include <errno.h>
#include <string.h>

#include "common/base.h"

static int fake_list(struct store *store, const struct store_list_range *range,
                     const struct store_list_callbacks *callbacks, void *userdata,
                     struct store_list **ret_list) {
        struct fake_store *fake = (struct fake_store *)store;
        int error = fake->list_error;

        MUST(!range);
        MUST(!fake->callbacks); /* one at a time */
        fake->list_error = 0;
        if (error)
                return error;
        fake->lists++;
        fake->callbacks = callbacks;
        fake->list_userdata = userdata;
        *ret_list = &fake->list;
        return 0;
}

static void fake_list_cancel(struct store_list *list) {
        MUST(list->store->callbacks);
        list->store->callbacks = NULL;
        list->store->canceled_lists++;
}

static int fake_read(struct store *store, const struct store_read_range *range,
                     void (*on_done)(void *userdata, const struct store_read_result *result),
                     void *userdata, struct store_read **ret_read) {
        struct fake_store *fake = (struct fake_store *)store;
        struct store_read *read = calloc(1, sizeof(*read));

        if (!read)
                return -ENOMEM;
        MUST(fake->read_count < FAKE_READS_MOST);
        read->name = strndup(range->name, range->name_size);
        if (!read->name) {
                free(read);
                return -ENOMEM;
        }
        read->store = fake;
        read->offset = range->offset;
        read->size = range->size_bytes;
        read->buffer = range->buffer;
        if (range->tag)
                strncpy(read->tag, range->tag, sizeof(read->tag) - 1);
        read->on_done = on_done;
        read->userdata = userdata;
        fake->reads[fake->read_count++] = read;
        fake->reads_made++;
        fake->bytes_read += range->size_bytes;
        *ret_read = read;
        return 0;
}

static void read_remove(struct store_read *read) {
        struct fake_store *fake = read->store;
        unsigned at = 0;

        while (fake->reads[at] != read)
                MUST(++at < fake->read_count);
        fake->read_count--;
        memmove(fake->reads + at, fake->reads + at + 1,
                (fake->read_count - at) * sizeof(fake->reads[0]));
        free(read->name);
        free(read);
}

static bool fake_read_cancel(struct store_read *read, void (*on_released)(void *userdata),
                             void *userdata) {
        (void)on_released;
        (void)userdata;
        read->store->canceled_reads++;
        read_remove(read);
        return true;
}

static void on_handle_closed(uv_handle_t *handle) {
        struct fake_store *fake = handle->data;

        MUST(fake->read_count == 0 && !fake->callbacks);
        if (fake->on_closed)
                fake->on_closed(fake->closed_userdata);
        free(fake->store.url);
        free(fake->store.endpoint);
        free(fake);
}

static void fake_close(struct store *store, void (*on_closed)(void *userdata), void *userdata) {
        struct fake_store *fake = (struct fake_store *)store;

        fake->on_closed = on_closed;
        fake->closed_userdata = userdata;
        uv_close((uv_handle_t *)&fake->handle, on_handle_closed);
}

static int fake_watch(struct store *store, void (*on_change)(void *userdata, bool is_deletion),
                      void *userdata) {
        struct fake_store *fake = (struct fake_store *)store;

        if (!fake->tells)
                return -ENOTSUP;
        fake->on_change = on_change;
        fake->change_userdata = userdata;
        return 0;
}

struct fake_store *fake_store_new(uv_loop_t *loop, const char *url) {
        static const struct store_operations operations = {
                .list = fake_list,
                .list_cancel = fake_list_cancel,
                .read = fake_read,
                .read_cancel = fake_read_cancel,
                .close = fake_close,
                .watch = fake_watch,
        };
        struct fake_store *fake = calloc(1, sizeof(*fake));

        if (!fake)
                return NULL;
        fake->store = (struct store){
                .operations = &operations,
                .url = strdup(url),
                .endpoint = strdup("fake"),
                .window_start = 128,
        };
        if (!fake->store.url || !fake->store.endpoint) {
                free(fake->store.url);
                free(fake->store.endpoint);
                free(fake);
                return NULL;
        }
        fake->list.store = fake;
        uv_timer_init(loop, &fake->handle);
        fake->handle.data = fake;
        return fake;
}

static void give_row(struct fake_store *fake, const char *name, uint64_t size_bytes,
                     int64_t mtime_ns, const char *tag, bool is_archived) {
        struct store_row row = { .name = name,
                                 .name_size = strlen(name),
                                 .size_bytes = size_bytes,
                                 .mtime_ns = mtime_ns,
                                 .is_archived = is_archived };

        MUST(fake->callbacks);
        snprintf(row.tag, sizeof(row.tag), "%s", tag);
        fake->callbacks->on_row(fake->list_userdata, &row);
}

void fake_store_tagged_row(struct fake_store *fake, const char *name, uint64_t size_bytes,
                           int64_t mtime_ns, const char *tag) {
        give_row(fake, name, size_bytes, mtime_ns, tag, false);
}

void fake_store_archived_row(struct fake_store *fake, const char *name, uint64_t size_bytes,
                             int64_t mtime_ns, const char *tag) {
        give_row(fake, name, size_bytes, mtime_ns, tag, true);
}

void fake_store_row(struct fake_store *fake, const char *name, uint64_t size_bytes,
                    int64_t mtime_ns) {
        fake_store_tagged_row(fake, name, size_bytes, mtime_ns, "");
}

void fake_store_unreadable(struct fake_store *fake, const char *directory) {
        struct store_failure failure = { .class = STORE_PERMANENT,
                                         .code = "EACCES",
                                         .message = "not for you" };

        MUST(fake->callbacks);
        fake->callbacks->on_unreadable(fake->list_userdata, directory, strlen(directory), &failure);
}

void fake_store_listed(struct fake_store *fake, enum store_failure_class class) {
        const struct store_list_callbacks *callbacks = fake->callbacks;
        struct store_list_counts counts = { .requests = 1 };
        struct store_failure failure = { .class = class };

        MUST(callbacks);
        fake->callbacks = NULL;
        snprintf(failure.code, sizeof(failure.code), "%s", class == STORE_OK ? "" : "fake");
        callbacks->on_done(fake->list_userdata, &failure, &counts);
}

static void read_end(struct store_read *read, const struct store_read_result *result) {
        void (*on_done)(void *userdata, const struct store_read_result *result_) = read->on_done;
        void *userdata = read->userdata;

        read_remove(read);
        on_done(userdata, result);
}

void fake_store_answer(struct fake_store *fake, unsigned at, const uint8_t *bytes,
                       uint64_t size_bytes, const char *tag) {
        struct store_read *read = fake->reads[at];
        struct store_read_result result = { .total_bytes = size_bytes };

        MUST(at < fake->read_count);
        snprintf(result.tag, sizeof(result.tag), "%s", tag);
        if (read->offset < size_bytes) {
                result.size_bytes = min_u64(read->size, size_bytes - read->offset);
                memcpy(read->buffer, bytes + read->offset, result.size_bytes);
                read->store->bytes_sent += result.size_bytes;
        } else {
                result.failure.class = STORE_END;
        }
        read_end(read, &result);
}

void fake_store_fail(struct fake_store *fake, unsigned at, enum store_failure_class class,
                     const char *code) {
        struct store_read_result result = { .failure.class = class, .total_bytes = UINT64_MAX };

        MUST(at < fake->read_count);
        snprintf(result.failure.code, sizeof(result.failure.code), "%s", code);
        read_end(fake->reads[at], &result);
}
