/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which directory an event is of does not matter, so there is no table of watches. The kernel counts
 * their numbers upwards: a number that is not larger than the last is of a directory that has its
 * watch already.
 */
#include "daemon/store/notify.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/inotify.h>

#include "common/base.h"
#include "daemon/store/event_name.h"

#define EVENTS \
        (IN_CREATE | IN_MODIFY | IN_CLOSE_WRITE | IN_DELETE | IN_MOVED_FROM | IN_MOVED_TO | \
         IN_DELETE_SELF | IN_MOVE_SELF | IN_ONLYDIR)
#define DELETIONS (IN_DELETE | IN_MOVED_FROM | IN_DELETE_SELF | IN_MOVE_SELF)
#define WATCHES_MOST 65536u
#define BUFFER_BYTES 65536u
#define READS_MOST 16 /* in one turn of the loop */

struct notify {
        uv_poll_t poll;
        int fd;
        unsigned watches_most;
        _Atomic unsigned watches;
        _Atomic int last; /* the largest number of a watch so far */
        _Atomic bool is_short;
        void (*on_change)(void *userdata, bool is_deletion);
        void *userdata;
        void (*on_closed)(void *userdata);
        void *closed_userdata;
};

static unsigned watches_of_user(void) {
        FILE *file = fopen("/proc/sys/fs/inotify/max_user_watches", "re");
        unsigned watches = 0;

        if (!file)
                return WATCHES_MOST;
        if (fscanf(file, "%u", &watches) != 1)
                watches = 0;
        fclose(file);
        return watches / 2 < WATCHES_MOST ? watches / 2 : WATCHES_MOST;
}

/* Checkpoints and the like are written beside event files all the time. */
static bool is_of_interest(const struct inotify_event *event) {
        if (event->mask & (IN_ISDIR | IN_DELETE_SELF | IN_MOVE_SELF | IN_Q_OVERFLOW))
                return true;
        return event->len > 0 && event_name_is(event->name, strlen(event->name));
}

static void take_events(struct notify *notify, const char *bytes, size_t size, bool *changed,
                        bool *deleted) {
        while (size >= sizeof(struct inotify_event)) {
                const struct inotify_event *event = (const void *)bytes;
                size_t event_size = sizeof(*event) + event->len;

                if (event->mask & IN_IGNORED)
                        atomic_fetch_sub(&notify->watches, 1);
                else if (is_of_interest(event)) {
                        *changed = true;
                        *deleted |= (event->mask & DELETIONS) != 0;
                }
                bytes += event_size;
                size -= event_size;
        }
}

static void on_readable(uv_poll_t *poll, int status, int events) {
        struct notify *notify = poll->data;
        char buffer[BUFFER_BYTES] __attribute__((aligned(__alignof__(struct inotify_event))));
        bool changed = status < 0, deleted = false;

        (void)events;
        for (int i = 0; i < READS_MOST; i++) {
                ssize_t size = read(notify->fd, buffer, sizeof(buffer));

                if (size <= 0)
                        break;
                take_events(notify, buffer, (size_t)size, &changed, &deleted);
        }
        if (changed)
                notify->on_change(notify->userdata, deleted);
}

int notify_new(uv_loop_t *loop, unsigned watches_most, struct notify **ret_notify) {
        struct notify *notify = calloc(1, sizeof(*notify));
        int r;

        if (!notify)
                return -ENOMEM;
        notify->watches_most = watches_most ? watches_most : watches_of_user();
        notify->fd = inotify_init1(IN_NONBLOCK | IN_CLOEXEC);
        r = notify->fd < 0 ? -errno : uv_poll_init(loop, &notify->poll, notify->fd);
        if (r < 0) {
                close_fdp(&notify->fd);
                free(notify);
                return r;
        }
        notify->poll.data = notify;
        *ret_notify = notify;
        return 0;
}

void notify_listen(struct notify *notify, void (*on_change)(void *userdata, bool is_deletion),
                   void *userdata) {
        notify->on_change = on_change;
        notify->userdata = userdata;
        if (on_change)
                uv_poll_start(&notify->poll, UV_READABLE, on_readable);
        else
                uv_poll_stop(&notify->poll);
}

void notify_add(struct notify *notify, const char *directory) {
        int number, last = atomic_load(&notify->last);

        if (atomic_load(&notify->watches) >= notify->watches_most) {
                atomic_store(&notify->is_short, true);
                return;
        }
        number = inotify_add_watch(notify->fd, directory, EVENTS);
        if (number < 0) {
                if (errno == ENOSPC || errno == ENOMEM)
                        atomic_store(&notify->is_short, true);
                return;
        }
        while (number > last && !atomic_compare_exchange_weak(&notify->last, &last, number))
                ;
        if (number > last)
                atomic_fetch_add(&notify->watches, 1);
}

unsigned notify_watches(const struct notify *notify) {
        return atomic_load(&notify->watches);
}

const char *notify_state(const struct notify *notify) {
        return atomic_load(&notify->is_short) ? "inotify, but there are not enough watches: "
                                                "fs.inotify.max_user_watches"
                                              : "inotify";
}

static void on_poll_closed(uv_handle_t *handle) {
        struct notify *notify = handle->data;
        void (*on_closed)(void *userdata) = notify->on_closed;
        void *userdata = notify->closed_userdata;

        close(notify->fd);
        free(notify);
        if (on_closed)
                on_closed(userdata);
}

void notify_close(struct notify *notify, void (*on_closed)(void *userdata), void *userdata) {
        notify->on_closed = on_closed;
        notify->closed_userdata = userdata;
        uv_close((uv_handle_t *)&notify->poll, on_poll_closed);
}
