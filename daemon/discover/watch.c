/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One timer decides when to list next. After a failure it is the back-off (or, when the source
 * counts as failing, a slow retry); after a success the poll interval; when a file is missing for
 * the first time 2 s, so that a deletion is known soon.
 */
#include "daemon/discover/watch.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "common/base.h"
#include "daemon/discover/filter.h"
#include "daemon/discover/recall.h"
#include "daemon/discover/sweep.h"

#define RETRY_FIRST_MS 100
#define RETRY_LAST_MS 5000
#define RETRY_FAILING_MS 10000
#define GIVE_UP_TRIES 10
#define GIVE_UP_NS (120 * 1000000000ull)
#define MISSING_MS 2000
#define MISSING_GONE 2
/* Between a listing and the next one that an event asks for: so many times what it has taken. */
#define REST_SHARE 9
#define REST_LEAST_MS 20
#define REST_MOST_MS 1000
#define FRESH_NS (2 * 1000000000ull) /* asked for again so soon: that listing will do */
#define DAY_S 86400
#define SEEN_REMEMBERED UINT32_MAX /* by no listing: as if by one of the run before */
#define FULL_LEAST_MS 600000u
#define FULL_MOST_MS 3600000u
#define FULL_DAILY_NANO_USD 250000000ull

struct watch {
        struct catalog_source *source;
        const struct watch_events *events;
        void *userdata;
        uv_timer_t timer;
        struct watch_options options;
        struct poll poll;
        struct sweep *sweep;
        struct recall recall;
        bool recalling;         /* what is remembered is given, not what a listing has */
        enum sweep_kind kind;   /* of the last one */
        bool listing;           /* a sweep is under way */
        bool full;              /* the next one is a full one */
        uint64_t since_full_ms; /* waited since the last full one */
        bool polling;           /* the timer waits for a poll, not for another try */
        bool stopped;           /* too many requests today: it waits for midnight */
        int64_t newest_ns;      /* mtime that this listing has seen; INT64_MIN: none */
        bool again;             /* another one is wanted after it */
        bool changed, missing, out_of_memory; /* seen by this listing */
        bool hears;                   /* the store tells what happens, while somebody follows */
        bool soon;                    /* it has told something since the last listing began */
        bool deleted;                 /* likewise, that something may be gone */
        bool confirmed;               /* this listing began after that: what it misses is gone */
        uint64_t began_ns, rested_ns; /* the last listing; it has cost enough until then */
        unsigned tries;
        uint64_t vain_requests; /* of a listing that failed: the next one makes them again */
        uint64_t failing_since_ns;
        void (*on_closed)(void *userdata);
        void *closed_userdata;
};

static void watch_list(struct watch *watch);
static void watch_schedule_poll(struct watch *watch);

static int64_t utc_s(const struct watch *watch) {
        return watch->options.utc_s ? watch->options.utc_s() : time(NULL);
}

/* All that was sent today to the source's endpoint, for whatever source. */
static bool watch_has_spent(const struct watch *watch) {
        uint64_t sums[REQUEST_KINDS] = { 0 }, sum = 0;

        if (watch->options.requests_per_day_max == 0)
                return false;
        catalog_requests_today(watch->source->catalog, watch->source->store->endpoint, utc_s(watch),
                               sums);
        for (unsigned i = 0; i < REQUEST_KINDS; i++)
                sum += sums[i];
        return sum >= watch->options.requests_per_day_max;
}

static void on_timer(uv_timer_t *timer) {
        struct watch *watch = timer->data;

        if (watch->stopped)
                watch_schedule_poll(watch);
        else
                watch_list(watch);
}

static void watch_schedule(struct watch *watch, uint64_t wait_ms) {
        watch->since_full_ms += wait_ms;
        watch->recall.since_ms += wait_ms;
        watch->polling = watch->stopped = false;
        uv_timer_start(&watch->timer, on_timer, wait_ms, 0);
}

/* By itself, that is: not because somebody asked. At midnight the count begins anew. */
static void watch_schedule_by_itself(struct watch *watch, uint64_t wait_ms) {
        if (wait_ms == POLL_REST) {
                watch->polling = watch->stopped = false;
                uv_timer_stop(&watch->timer);
                return;
        }
        if (!watch_has_spent(watch)) {
                watch_schedule(watch, wait_ms);
                return;
        }
        watch_schedule(watch, (uint64_t)(DAY_S - utc_s(watch) % DAY_S) * 1000);
        watch->stopped = true;
}

/* As a file remembers it. They come a second apart at least: a century goes by before they repeat. */
static uint32_t listing_number(uint64_t listings) {
        return (uint32_t)listings;
}

static void note_seen(const struct watch *watch, struct catalog_file *file) {
        file->seen_listing = watch->recalling ? SEEN_REMEMBERED
                                              : listing_number(watch->source->listings + 1);
        file->is_remembered = watch->recalling;
        file->missing = 0;
}

static int take_row(struct catalog_file *file, const struct store_row *row) {
        file->mtime_ns = row->mtime_ns;
        return catalog_set_tag(file, row->tag);
}

/* As if it had not been seen: the next listing brings it again. */
static void forget_row(struct watch *watch, struct catalog_file *file) {
        file->seen_listing = 0;
        watch->out_of_memory = true;
}

/*
 * True if a filter leaves the file out: its row is known then, and that is all. A file that was let
 * through once stays.
 */
static bool file_is_excluded(struct watch *watch, struct catalog_file *file,
                             const struct store_row *row) {
        const char *why = NULL;

        if (file->seen_listing == 0 || file->excluded)
                why = filter_excludes(watch->source->filter, row->name, row->name_size,
                                      row->mtime_ns);
        if (file->excluded && !why)
                file->seen_listing = 0; /* as a new one */
        catalog_set_excluded(file, why);
        if (!why)
                return false;
        note_seen(watch, file);
        file->listed_bytes = row->size_bytes;
        if (take_row(file, row) < 0)
                forget_row(watch, file);
        return true;
}

static void on_row(void *userdata, const struct store_row *row) {
        struct watch *watch = userdata;
        struct catalog_file *file;
        enum watch_change change;
        bool news;

        if (catalog_add_file(watch->source, row->name, row->name_size, strlen(row->tag), &file,
                             NULL) < 0) {
                watch->out_of_memory = true;
                return;
        }
        if (file_is_excluded(watch, file, row))
                return;
        news = row_change(file, row, &change);
        note_seen(watch, file);
        file->is_archived = row->is_archived;
        if (row->mtime_ns > watch->newest_ns)
                watch->newest_ns = row->mtime_ns;
        if (!news)
                return;
        /* A listing that does not know sizes must not make us forget what an answer said. */
        if (row->size_bytes != UINT64_MAX || change == WATCH_APPEARED)
                file->listed_bytes = row->size_bytes;
        watch->changed |= change != WATCH_MAY_HAVE_GROWN;
        if (!watch->recalling && change != WATCH_MAY_HAVE_GROWN)
                recall_note(&watch->recall, change == WATCH_APPEARED);
        if (take_row(file, row) < 0 ||
            watch->events->file_changed(watch->userdata, file, change) < 0)
                forget_row(watch, file);
}

static void on_unreadable(void *userdata, const char *directory, size_t size,
                          const struct store_failure *failure) {
        struct watch *watch = userdata;

        if (catalog_add_unreadable(watch->source, directory, size, failure) < 0)
                watch->out_of_memory = true;
}

/*
 * True if the file lies in a directory that this listing could not read: it is unknown whether it
 * is there.
 */
static bool file_is_unknown(const struct catalog_source *source, const struct catalog_file *file) {
        for (size_t i = 0; i < source->unreadable_count; i++) {
                const struct catalog_name *directory = &source->unreadable[i].directory;

                if (file->path.size > directory->size && file->path.bytes[directory->size] == '/' &&
                    !memcmp(file->path.bytes, directory->bytes, directory->size))
                        return true;
        }
        return false;
}

/*
 * Counts who is missing in a complete listing. Backwards, as the receiver may remove what is gone.
 */
static void watch_look_for_missing(struct watch *watch) {
        struct catalog_source *source = watch->source;

        for (size_t i = source->run_count; i-- > 0;) {
                struct catalog_run *run = source->runs[i];

                for (size_t k = run->file_count; k-- > 0;) {
                        struct catalog_file *file = run->files[k];
                        bool last = run->file_count == 1;

                        if (file->seen_listing == listing_number(source->listings) ||
                            file->state == CATALOG_GONE || !sweep_covers(watch->sweep, run) ||
                            file_is_unknown(source, file))
                                continue;
                        if (++file->missing >= MISSING_GONE || file->is_remembered ||
                            watch->confirmed) {
                                watch->changed = true;
                                recall_note(&watch->recall, true);
                                watch->events->file_gone(watch->userdata, file);
                        } else {
                                watch->missing = true;
                        }
                        if (last)
                                break; /* the run may be gone with it */
                }
        }
}

/* Something has happened: a listing at once, but for what the last one has cost. */
static void watch_hurry(struct watch *watch) {
        uint64_t now_ns = uv_hrtime();
        uint64_t wait_ms = watch->rested_ns > now_ns ? (watch->rested_ns - now_ns) / 1000000 : 0;

        if (!uv_is_active((uv_handle_t *)&watch->timer) ||
            uv_timer_get_due_in(&watch->timer) > wait_ms)
                watch_schedule(watch, wait_ms);
}

/* Where listings fail, their back-off says when. */
static void on_store_changed(void *userdata, bool is_deletion) {
        struct watch *watch = userdata;

        watch->soon = true;
        watch->deleted |= is_deletion;
        if (!watch->listing && watch->tries == 0)
                watch_hurry(watch);
}

/*
 * The directories are known to the store when it has listed them. Whoever says when storage is to be
 * looked at does not want it to be looked at in between.
 */
static void watch_hear(struct watch *watch, bool hears) {
        struct store *store = watch->source->store;

        if (hears == watch->hears || !store->operations->watch)
                return;
        if (hears && (watch->poll.interval_ns != POLL_AUTO ||
                      (store->mount.type[0] && !store->mount.is_local)))
                return;
        watch->hears = hears;
        if (store->operations->watch(store, hears ? on_store_changed : NULL, watch) < 0)
                watch->hears = false;
        else if (hears)
                watch_now(watch);
}

static void watch_schedule_poll(struct watch *watch) {
        if (watch->soon && !watch->again) {
                watch_hurry(watch);
                return;
        }
        if (watch->again || watch->missing) {
                watch_schedule(watch, watch->again ? 0 : MISSING_MS);
                return;
        }
        watch_schedule_by_itself(watch, poll_next_ms(&watch->poll));
        watch->polling = !watch->stopped && uv_is_active((uv_handle_t *)&watch->timer);
}

/* When storage changed last: now, or, of what the first listing found, as its times say. */
static void watch_note_change(struct watch *watch) {
        int64_t now_ns = utc_s(watch) * 1000000000;
        bool is_first = watch->source->listings == 1;

        if (!watch->changed)
                return;
        poll_changed(&watch->poll,
                     is_first && watch->newest_ns != INT64_MIN && watch->newest_ns < now_ns
                             ? (uint64_t)(now_ns - watch->newest_ns) / 1000000
                             : 0);
}

static void watch_failed(struct watch *watch, const struct store_failure *failure) {
        struct catalog_source *source = watch->source;
        uint64_t wait_ms = min_u64(RETRY_FIRST_MS << (watch->tries < 10 ? watch->tries : 10),
                                   RETRY_LAST_MS);

        if (watch->tries++ == 0)
                watch->failing_since_ns = uv_hrtime();
        source->failure = *failure;
        watch->full |= watch->kind == SWEEP_FULL;
        if (failure->class == STORE_PERMANENT || watch->tries >= GIVE_UP_TRIES ||
            uv_hrtime() - watch->failing_since_ns > GIVE_UP_NS)
                source->state = CATALOG_SOURCE_FAILING;
        if (source->state == CATALOG_SOURCE_FAILING)
                wait_ms = RETRY_FAILING_MS;
        else
                wait_ms = wait_ms / 2 + (uint64_t)rand() % (wait_ms / 2 + 1);
        if (watch->again)
                watch_schedule(watch, 0);
        else
                watch_schedule_by_itself(
                        watch,
                        poll_retry_ms(&watch->poll, max_u64(wait_ms, failure->retry_after_ms)));
}

static void watch_remember(struct watch *watch, bool is_end) {
        const struct watch_options *options = &watch->options;
        unsigned window = options->window ? options->window(watch->userdata, watch->source) : 0;

        if (watch->source->listings > 0)
                recall_write(&watch->recall, watch->source, window, sweep_bounds(watch->sweep),
                             is_end);
}

static void watch_succeeded(struct watch *watch) {
        struct catalog_source *source = watch->source;

        watch->tries = 0;
        source->listings++;
        source->listed_at_ns = uv_hrtime();
        source->state = CATALOG_SOURCE_OK;
        source->failure = (struct store_failure){ 0 };
        watch_look_for_missing(watch);
        watch_note_change(watch);
        watch_remember(watch, false);
        watch_schedule_poll(watch);
}

static uint64_t watch_rest_until(const struct watch *watch) {
        uint64_t now_ns = uv_hrtime();
        uint64_t rest_ms = REST_SHARE * (now_ns - watch->began_ns) / 1000000;

        return now_ns + min_u64(max_u64(rest_ms, REST_LEAST_MS), REST_MOST_MS) * 1000000;
}

static void count_repeated(struct watch *watch, const struct store_list_counts *counts,
                           bool complete) {
        watch->source->store->requests.repeated[REQUEST_LIST] += min_u64(
                counts->repeated + watch->vain_requests, counts->requests);
        watch->vain_requests = complete ? 0 : counts->requests;
}

static void on_list_done(void *userdata, const struct store_failure *failure,
                         const struct store_list_counts *counts) {
        struct watch *watch = userdata;
        struct store_failure memory = { .class = STORE_TRANSIENT,
                                        .code = "ENOMEM",
                                        .message = "out of memory" };
        bool complete = failure->class == STORE_OK && !watch->out_of_memory;

        watch->listing = false;
        watch->rested_ns = watch_rest_until(watch);
        watch->source->attempts++;
        request_count_add(&watch->source->store->requests, REQUEST_LIST, counts->requests,
                          utc_s(watch));
        count_repeated(watch, counts, complete);
        watch->poll.nano_usd = max_u64(sweep_poll_requests(watch->sweep, utc_s(watch)), 1) *
                               watch->source->price.nano_usd[REQUEST_LIST];
        if (complete)
                watch_succeeded(watch);
        else
                watch_failed(watch, watch->out_of_memory ? &memory : failure);
        watch->events->listed(watch->userdata, watch->source, complete);
}

static const struct sweep_events sweep_events = { on_row, on_unreadable, on_list_done };

/*
 * Between full sweeps pass ten minutes to an hour: as many as a quarter dollar a day pays for.
 */
static enum sweep_kind watch_next_kind(const struct watch *watch) {
        uint64_t nano_usd = sweep_full_requests(watch->sweep) *
                            watch->source->price.nano_usd[REQUEST_LIST];
        uint64_t fair_ms = nano_usd * (DAY_S * 1000ull) / FULL_DAILY_NANO_USD;
        uint64_t interval_ms = min_u64(max_u64(fair_ms, FULL_LEAST_MS), FULL_MOST_MS);

        return watch->full || watch->since_full_ms >= interval_ms ||
                               !sweep_has_live(watch->sweep, utc_s(watch))
                       ? SWEEP_FULL
                       : SWEEP_LIVE;
}

/* The request for the listing is on its way: reads go out beside it. */
static void watch_give_remembered(struct watch *watch) {
        watch->recalling = true;
        recall_give(&watch->recall, watch->source, on_row, watch);
        watch->recalling = false;
        watch->source->has_remembered = watch->source->file_count > 0;
        watch->newest_ns = INT64_MIN;
}

static void watch_list(struct watch *watch) {
        enum sweep_kind kind = watch_next_kind(watch);
        int r;

        if (watch->listing) {
                watch->again = true;
                return;
        }
        uv_timer_stop(&watch->timer);
        watch->began_ns = uv_hrtime();
        watch->confirmed = watch->deleted;
        watch->deleted = watch->soon = false;
        watch->again = watch->changed = watch->missing = watch->out_of_memory = false;
        watch->polling = watch->stopped = watch->full = false;
        watch->newest_ns = INT64_MIN;
        if (kind == SWEEP_FULL)
                watch->since_full_ms = 0;
        watch->kind = kind;
        catalog_clear_unreadable(watch->source);
        watch->listing = true;
        if (watch->source->attempts == 0)
                recall_read(&watch->recall, watch->source, sweep_bounds(watch->sweep));
        r = sweep_start(watch->sweep, kind, utc_s(watch));
        if (watch->recall.image)
                watch_give_remembered(watch);
        if (r < 0) {
                struct store_failure failure = { .class = STORE_TRANSIENT,
                                                 .code = "ENOMEM",
                                                 .message = "cannot start a listing" };

                watch->listing = false;
                watch->source->attempts++;
                watch_failed(watch, &failure);
                watch->events->listed(watch->userdata, watch->source, false);
        }
}

int watch_new(uv_loop_t *loop, struct catalog_source *source, const struct watch_options *options,
              const struct watch_events *events, void *userdata, struct watch **ret_watch) {
        struct watch *watch = calloc(1, sizeof(*watch));

        if (!watch)
                return -ENOMEM;
        watch->sweep = sweep_new(source, &sweep_events, watch);
        if (!watch->sweep || recall_init(&watch->recall, options->remember) < 0) {
                sweep_free(watch->sweep);
                free(watch);
                return -ENOMEM;
        }
        watch->source = source;
        watch->options = *options;
        poll_init(&watch->poll, options->poll_ns);
        watch->events = events;
        watch->userdata = userdata;
        uv_timer_init(loop, &watch->timer);
        watch->timer.data = watch;
        if (options->poll_ns != POLL_ON_DEMAND)
                watch_schedule(watch, 0);
        *ret_watch = watch;
        return 0;
}

void watch_now(struct watch *watch) {
        if (watch->listing)
                watch->again = true;
        else
                watch_schedule(watch, 0);
}

void watch_reload(struct watch *watch) {
        watch->full = true;
        watch_now(watch);
}

uint64_t watch_next_attempt(const struct watch *watch) {
        return watch->source->attempts + (watch->listing ? 2 : 1);
}

bool watch_misses_files(const struct watch *watch) {
        return watch->missing;
}

bool watch_begins_in_order(const struct watch *watch) {
        const struct catalog_source *source = watch->source;

        return watch->listing && source->attempts == 0 && !source->has_remembered &&
               sweep_is_in_order(watch->sweep);
}

void watch_set_interest(struct watch *watch, enum watch_interest interest) {
        bool is_followed = interest == WATCH_FOLLOWED, was_followed = watch->poll.followed;

        if (is_followed == was_followed)
                return;
        poll_ask(&watch->poll);
        watch->poll.followed = is_followed;
        if (watch->polling && watch->poll.interval_ns == POLL_AUTO)
                watch_schedule_poll(watch); /* at the pace of those who are there now */
        else if (is_followed)
                watch_ask(watch);
        watch_hear(watch, is_followed);
}

void watch_ask(struct watch *watch) {
        const struct catalog_source *source = watch->source;
        bool is_idle = !watch->listing && !uv_is_active((uv_handle_t *)&watch->timer);
        bool is_fresh = source->listings > 0 && uv_hrtime() - source->listed_at_ns < FRESH_NS;
        bool is_good = source->listings > 0 && source->failure.class == STORE_OK;

        poll_ask(&watch->poll);
        if (!is_idle || (is_good && (is_fresh || watch->poll.interval_ns == POLL_NEVER)))
                return;
        if (source->listings == 0)
                watch_schedule(watch, 0);
        else
                watch_schedule_by_itself(watch, 0);
}

enum watch_polling watch_polling(const struct watch *watch) {
        if (watch->stopped)
                return WATCH_POLLING_STOPPED;
        if (watch->poll.interval_ns == POLL_NEVER)
                return WATCH_POLLING_OFF;
        return watch->listing || uv_is_active((const uv_handle_t *)&watch->timer)
                       ? WATCH_POLLING_ON
                       : WATCH_POLLING_RESTS;
}

const char *watch_polling_name(enum watch_polling polling) {
        static const char *const names[] = {
                [WATCH_POLLING_ON] = "on",
                [WATCH_POLLING_RESTS] = "resting",
                [WATCH_POLLING_STOPPED] = "stopped",
                [WATCH_POLLING_OFF] = "off",
        };

        return names[polling];
}

bool watch_hears(const struct watch *watch) {
        return watch->hears;
}

uint64_t watch_wait_ms(const struct watch *watch) {
        return uv_is_active((const uv_handle_t *)&watch->timer) ? uv_timer_get_due_in(&watch->timer)
                                                                : UINT64_MAX;
}

static void on_timer_closed(uv_handle_t *handle) {
        struct watch *watch = handle->data;
        void (*on_closed)(void *userdata) = watch->on_closed;
        void *userdata = watch->closed_userdata;

        free(watch);
        if (on_closed)
                on_closed(userdata);
}

void watch_close(struct watch *watch, void (*on_closed)(void *userdata), void *userdata) {
        watch_hear(watch, false);
        watch_remember(watch, true);
        recall_deinit(&watch->recall);
        watch->sweep = sweep_free(watch->sweep);
        watch->on_closed = on_closed;
        watch->closed_userdata = userdata;
        uv_close((uv_handle_t *)&watch->timer, on_timer_closed);
}
