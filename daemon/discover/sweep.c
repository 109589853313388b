/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A sweep is a set of parts, each one listing of the store, so many at once. A part that fails ends
 * all of them: the store has tried again by itself. What a long listing without bounds is split at
 * is found while it goes on, so that nothing waits for it.
 */
#include "daemon/discover/sweep.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "common/base.h"
#include "common/name_id.h"
#include "daemon/core/list.h"

#define PARTS_AT_ONCE 32u
#define PAGE_OBJECTS 1000u
#define PAGES_FLAT 3u       /* up to so many pages one listing will do */
#define SPLIT_LEAST 4u      /* directories, for a listing to be split there */
#define PROBE_DEPTH 4u      /* directories with one directory in them are entered for that */
#define PROBE_MOST 10000u   /* directories kept */
#define KNOWN_MOST 1000000u /* directories known: beyond that there are only full sweeps */
#define LIVE_NS (7200 * 1000000000ll) /* so long after its last change a run is live */

struct part {
        struct list node; /* in waiting or listing */
        struct sweep *sweep;
        struct store_list *list;
        char *below, *after, *until; /* NULL: not given */
        char *position;              /* the last name that a whole page has had */
        bool one_level;
        bool probes; /* its directories are what a listing may be split at */
        bool adopts; /* its directories have been there before */
        bool is_new; /* a directory that was not there before */
        struct store_list_counts counts;
};

struct sweep {
        struct catalog_source *source;
        const struct sweep_events *events;
        void *userdata;
        enum sweep_kind kind;
        uint64_t serial;
        bool under_way;
        struct list waiting, listing; /* parts */
        unsigned listing_count;
        struct store_list_counts counts;
        uint64_t rows;

        struct part *whole; /* the one listing of all there is, while it may still be split */
        unsigned probe_depth;
        char **probed; /* directories that the probe has found, in order */
        size_t probed_count, probed_space;

        /* what is remembered */
        struct sweep_bounds bounds;
        struct store_list_counts full; /* of the last full sweep */
        bool is_sparse;
        struct id_map known; /* directories that were listed, or stood beside what was */
};

static void sweep_end(struct sweep *sweep, const struct store_failure *failure);

static struct store *store_of(const struct sweep *sweep) {
        return sweep->source->store;
}

/* ---- Directories that are known ---- */

static uint64_t directory_id(const struct sweep *sweep, const char *name, size_t size) {
        return name_id_run(store_of(sweep)->url, name, size);
}

/* That all directories in it are known: an id that is none of a directory. */
static uint64_t content_id(const struct sweep *sweep, const char *name) {
        return name_id_series(store_of(sweep)->url, name, strlen(name), "", 0);
}

/* Without memory it stays unknown, and is listed once more. */
static void learn(struct sweep *sweep, uint64_t id) {
        if (sweep->known.count < KNOWN_MOST)
                (void)id_map_add(&sweep->known, id, sweep);
}

/* ---- Parts ---- */

static void part_free(struct part *part) {
        list_remove(&part->node);
        free(part->below);
        free(part->after);
        free(part->until);
        free(part->position);
        free(part);
}

static int dup_text(const char *text, char **ret_copy) {
        if (text && !(*ret_copy = strdup(text)))
                return -ENOMEM;
        return 0;
}

static struct part *part_new(struct sweep *sweep, const char *below, const char *after,
                             const char *until) {
        struct part *part = calloc(1, sizeof(*part));

        if (!part)
                return NULL;
        list_init(&part->node);
        part->sweep = sweep;
        if (dup_text(below, &part->below) < 0 || dup_text(after, &part->after) < 0 ||
            dup_text(until, &part->until) < 0) {
                part_free(part);
                return NULL;
        }
        list_append(&sweep->waiting, &part->node);
        return part;
}

static void part_take_counts(struct part *part, const struct store_list_counts *counts) {
        struct sweep *sweep = part->sweep;

        sweep->counts.requests += counts->requests - part->counts.requests;
        sweep->counts.repeated += counts->repeated - part->counts.repeated;
        sweep->counts.objects += counts->objects - part->counts.objects;
        part->counts = *counts;
}

static int start_waiting(struct sweep *sweep);

static void fail_memory(struct sweep *sweep) {
        static const struct store_failure failure = { .class = STORE_TRANSIENT,
                                                      .code = "ENOMEM",
                                                      .message = "out of memory" };

        sweep_end(sweep, &failure);
}

/* ---- Splitting a long listing ---- */

static int probe(struct sweep *sweep, const char *below) {
        struct part *part = part_new(sweep, below, NULL, NULL);

        if (!part)
                return -ENOMEM;
        part->one_level = part->probes = part->adopts = true;
        sweep->probe_depth++;
        return start_waiting(sweep);
}

static void forget_probed(struct sweep *sweep) {
        for (size_t i = 0; i < sweep->probed_count; i++)
                free(sweep->probed[i]);
        free(sweep->probed);
        sweep->probed = NULL;
        sweep->probed_count = sweep->probed_space = 0;
}

static void keep_probed(struct sweep *sweep, const char *directory, size_t size) {
        if (sweep->probed_count == PROBE_MOST)
                return;
        if (sweep->probed_count == sweep->probed_space) {
                size_t space = sweep->probed_space ? 2 * sweep->probed_space : 64;
                char **longer = realloc(sweep->probed, space * sizeof(longer[0]));

                if (!longer)
                        return; /* fewer places to split at */
                sweep->probed = longer;
                sweep->probed_space = space;
        }
        sweep->probed[sweep->probed_count] = strndup(directory, size);
        sweep->probed_count += sweep->probed[sweep->probed_count] != NULL;
}

/* Parts between the bounds, from `after` on. */
static int add_bounded_parts(struct sweep *sweep, const char *after) {
        for (size_t i = 0; i <= sweep->bounds.count; i++) {
                const char *until = i < sweep->bounds.count ? sweep->bounds.names[i] : NULL;

                if (!part_new(sweep, NULL, after, until))
                        return -ENOMEM;
                after = until;
        }
        return 0;
}

/* What is left of the whole listing goes on in parts; its request that is under way is lost. */
static int split(struct sweep *sweep) {
        struct part *whole = sweep->whole;
        size_t first = 0;
        int r;

        while (whole->position && first < sweep->probed_count &&
               strcmp(sweep->probed[first], whole->position) <= 0)
                first++;
        if (!whole->position || sweep->probed_count - first < SPLIT_LEAST)
                return 0;
        r = sweep_bounds_set_directories(&sweep->bounds, sweep->probed + first,
                                         sweep->probed_count - first, PARTS_AT_ONCE);
        if (r == 0)
                r = add_bounded_parts(sweep, whole->position);
        if (r < 0)
                return r;
        store_of(sweep)->operations->list_cancel(whole->list);
        sweep->counts.requests++;
        sweep->listing_count--;
        sweep->whole = NULL;
        part_free(whole);
        return start_waiting(sweep);
}

static int probe_done(struct sweep *sweep) {
        CLEANUP(freep) char *only = NULL;
        int r = 0;

        if (!sweep->whole)
                return 0;
        if (sweep->probed_count != 1) {
                r = split(sweep);
        } else if (sweep->probe_depth < PROBE_DEPTH) {
                only = steal_pointer(&sweep->probed[0]);
                forget_probed(sweep);
                r = probe(sweep, only);
        }
        return r;
}

/* ---- Listings ---- */

static void on_row(void *userdata, const struct store_row *row) {
        struct part *part = userdata;

        part->sweep->rows += !part->one_level;
        part->sweep->events->on_row(part->sweep->userdata, row);
}

static void on_unreadable(void *userdata, const char *directory, size_t size,
                          const struct store_failure *failure) {
        struct part *part = userdata;

        part->sweep->events->on_unreadable(part->sweep->userdata, directory, size, failure);
}

static void on_directory(void *userdata, const char *directory, size_t size) {
        struct part *part = userdata;
        struct sweep *sweep = part->sweep;
        uint64_t id = directory_id(sweep, directory, size);
        CLEANUP(freep) char *name = NULL;
        struct part *more;

        if (part->probes && sweep->whole)
                keep_probed(sweep, directory, size);
        if (part->adopts) {
                learn(sweep, id);
                return;
        }
        if (id_map_find(&sweep->known, id))
                return;
        name = strndup(directory, size);
        more = name ? part_new(sweep, name, NULL, NULL) : NULL;
        if (more)
                more->is_new = true; /* started when this part is done; without memory next time */
}

static void on_page(void *userdata, const struct store_list_counts *counts, const char *last,
                    size_t last_size) {
        struct part *part = userdata;
        struct sweep *sweep = part->sweep;

        part_take_counts(part, counts);
        if (part != sweep->whole)
                return;
        free(part->position);
        part->position = strndup(last, last_size);
        if (counts->requests >= PAGES_FLAT && sweep->probe_depth == 0 && probe(sweep, "") < 0)
                sweep->probe_depth = PROBE_DEPTH; /* then it goes on as it is */
}

/* What the part has made known, now that all of it is listed. */
static void part_learn(struct part *part) {
        struct sweep *sweep = part->sweep;
        struct catalog_run *run;
        const char *directory;

        if (part->is_new)
                learn(sweep, directory_id(sweep, part->below, strlen(part->below)));
        if (!part->one_level)
                return;
        learn(sweep, content_id(sweep, part->below));
        directory = part->below[0] ? part->below : ".";
        run = catalog_find_run(sweep->source->catalog,
                               directory_id(sweep, directory, strlen(directory)));
        if (run)
                run->swept = sweep->serial;
}

static void on_done(void *userdata, const struct store_failure *failure,
                    const struct store_list_counts *counts) {
        static const struct store_failure none = { .class = STORE_OK };
        struct part *part = userdata;
        struct sweep *sweep = part->sweep;
        bool probes = part->probes;
        int r = 0;

        part_take_counts(part, counts);
        if (part->one_level)
                sweep->counts.objects -= counts->objects; /* they are counted where all is listed */
        sweep->listing_count--;
        if (sweep->whole == part)
                sweep->whole = NULL;
        if (failure->class == STORE_OK)
                part_learn(part);
        part_free(part);
        if (failure->class != STORE_OK && !(probes && sweep->kind == SWEEP_FULL)) {
                struct store_failure copy = *failure;

                sweep_end(sweep, &copy);
                return;
        }
        if (probes && failure->class == STORE_OK)
                r = probe_done(sweep);
        if (r == 0)
                r = start_waiting(sweep);
        if (r < 0)
                fail_memory(sweep);
        else if (list_is_empty(&sweep->listing))
                sweep_end(sweep, &none);
}

static int part_start(struct part *part) {
        static const struct store_list_callbacks callbacks = {
                .on_row = on_row,
                .on_unreadable = on_unreadable,
                .on_done = on_done,
                .on_directory = on_directory,
        };
        struct store *store = store_of(part->sweep);
        const struct store_list_range range = {
                .below = part->below ? part->below : "",
                .below_size = part->below ? strlen(part->below) : 0,
                .one_level = part->one_level,
                .after = part->after,
                .until = part->until,
                .on_page = on_page,
        };

        return store->operations->list(store, store->is_flat ? &range : NULL, &callbacks, part,
                                       &part->list);
}

/* Never calls back from inside. */
static int start_waiting(struct sweep *sweep) {
        while (!list_is_empty(&sweep->waiting) && sweep->listing_count < PARTS_AT_ONCE) {
                struct part *part = list_owner(sweep->waiting.next, struct part, node);
                int r = part_start(part);

                if (r < 0)
                        return r;
                list_remove(&part->node);
                list_append(&sweep->listing, &part->node);
                sweep->listing_count++;
        }
        return 0;
}

static void drop_parts(struct sweep *sweep) {
        list_for_each(waits, &sweep->waiting) part_free(list_owner(waits, struct part, node));
        list_for_each(lists, &sweep->listing) {
                struct part *part = list_owner(lists, struct part, node);

                store_of(sweep)->operations->list_cancel(part->list);
                part_free(part);
        }
        sweep->listing_count = 0;
        sweep->whole = NULL;
        forget_probed(sweep);
}

/* ---- What is remembered ---- */

static uint64_t page_objects(const struct sweep *sweep) {
        return store_of(sweep)->page_objects ? store_of(sweep)->page_objects : PAGE_OBJECTS;
}

/* After a full sweep of a flat store. Bounds that have done are kept. */
static void remember(struct sweep *sweep) {
        uint64_t pages = (sweep->counts.objects + page_objects(sweep) - 1) / page_objects(sweep);
        uint64_t foreign = sweep->counts.objects - min_u64(sweep->rows, sweep->counts.objects);
        bool is_sparse = pages > PAGES_FLAT && 5 * foreign >= sweep->counts.objects;
        bool is_good = sweep->bounds.count > 0 &&
                       sweep->counts.requests <=
                               (sweep->bounds.are_files ? pages + pages / 8 : pages);

        sweep->full = sweep->counts;
        sweep->is_sparse = is_sparse;
        if (pages <= PAGES_FLAT)
                sweep_bounds_deinit(&sweep->bounds);
        else if (!is_sparse && !is_good)
                sweep_bounds_set_files(&sweep->bounds, sweep->source,
                                       foreign == 0 ? page_objects(sweep)
                                                    : page_objects(sweep) * sweep->rows /
                                                              sweep->counts.objects);
}

static void sweep_end(struct sweep *sweep, const struct store_failure *failure) {
        drop_parts(sweep);
        sweep->under_way = false;
        if (failure->class == STORE_OK && sweep->kind == SWEEP_FULL && store_of(sweep)->is_flat)
                remember(sweep);
        sweep->events->on_done(sweep->userdata, failure, &sweep->counts);
}

/* ---- Live runs ---- */

static bool is_live(const struct catalog_run *run, int64_t now_s) {
        if (run->name.size == 1 && run->name.bytes[0] == '.')
                return false; /* the source itself is always looked at */
        for (size_t i = 0; i < run->file_count; i++)
                if (!run->files[i]->excluded &&
                    run->files[i]->mtime_ns > now_s * 1000000000 - LIVE_NS)
                        return true;
        return false;
}

static uint64_t live_count(const struct sweep *sweep, int64_t now_s) {
        uint64_t count = 0;

        for (size_t i = 0; i < sweep->source->run_count; i++)
                count += is_live(sweep->source->runs[i], now_s);
        return count;
}

static int add_level(struct sweep *sweep, const char *below) {
        struct part *part = part_new(sweep, below, NULL, NULL);

        if (!part)
                return -ENOMEM;
        part->one_level = true;
        part->adopts = !id_map_find(&sweep->known, content_id(sweep, below));
        return 0;
}

static int add_live(struct sweep *sweep, int64_t now_s) {
        int r = add_level(sweep, "");

        for (size_t i = 0; r == 0 && i < sweep->source->run_count; i++)
                if (is_live(sweep->source->runs[i], now_s))
                        r = add_level(sweep, sweep->source->runs[i]->name.bytes);
        return r;
}

bool sweep_is_in_order(const struct sweep *sweep) {
        return sweep->under_way && sweep->whole && store_of(sweep)->is_flat;
}

bool sweep_has_live(const struct sweep *sweep, int64_t now_s) {
        return sweep->is_sparse && sweep->known.count < KNOWN_MOST &&
               2 * (1 + live_count(sweep, now_s)) <= sweep->full.requests;
}

struct sweep_bounds *sweep_bounds(struct sweep *sweep) {
        return &sweep->bounds;
}

uint64_t sweep_full_requests(const struct sweep *sweep) {
        return sweep->full.requests;
}

uint64_t sweep_poll_requests(const struct sweep *sweep, int64_t now_s) {
        return sweep_has_live(sweep, now_s) ? 1 + live_count(sweep, now_s) : sweep->full.requests;
}

bool sweep_covers(const struct sweep *sweep, const struct catalog_run *run) {
        return sweep->kind == SWEEP_FULL || run->swept == sweep->serial;
}

/* ---- Life ---- */

static int add_all(struct sweep *sweep) {
        if (sweep->bounds.count > 0)
                return add_bounded_parts(sweep, NULL);
        sweep->whole = part_new(sweep, NULL, NULL, NULL);
        return sweep->whole ? 0 : -ENOMEM;
}

int sweep_start(struct sweep *sweep, enum sweep_kind kind, int64_t now_s) {
        int r;

        MUST(!sweep->under_way);
        sweep->kind = kind;
        sweep->serial++;
        sweep->counts = (struct store_list_counts){ 0 };
        sweep->rows = sweep->probe_depth = 0;
        r = kind == SWEEP_FULL ? add_all(sweep) : add_live(sweep, now_s);
        if (r == 0)
                r = start_waiting(sweep);
        if (r < 0) {
                drop_parts(sweep);
                return r;
        }
        sweep->under_way = true;
        return 0;
}

struct sweep *sweep_new(struct catalog_source *source, const struct sweep_events *events,
                        void *userdata) {
        struct sweep *sweep = calloc(1, sizeof(*sweep));

        if (!sweep)
                return NULL;
        sweep->source = source;
        sweep->events = events;
        sweep->userdata = userdata;
        list_init(&sweep->waiting);
        list_init(&sweep->listing);
        id_map_init(&sweep->known);
        return sweep;
}

struct sweep *sweep_free(struct sweep *sweep) {
        if (!sweep)
                return NULL;
        drop_parts(sweep);
        sweep_bounds_deinit(&sweep->bounds);
        id_map_deinit(&sweep->known);
        free(sweep);
        return NULL;
}
