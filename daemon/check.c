/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/check.h"

#include <errno.h>
#include <string.h>
#include <time.h>
#include <sys/resource.h>
#include <sys/sysinfo.h>
#include <uv.h>

#include "common/base.h"
#include "common/socket_path.h"
#include "daemon/discover/filter.h"
#include "daemon/discover/watch.h"
#include "daemon/publish/ring.h"

#define CHECK_E_PARTLY 1
#define CHECK_E_SOURCE 3

struct check {
        struct catalog catalog;
        size_t left; /* sources that have not been listed yet */
        bool failed; /* something would not work */
        bool partly; /* or not for all */
};

static int on_file_changed(void *userdata, struct catalog_file *file, enum watch_change change) {
        (void)userdata;
        (void)file;
        (void)change;
        return 0;
}

static void on_file_gone(void *userdata, struct catalog_file *file) {
        (void)userdata;
        (void)file;
}

static void check_report(struct check *check, const struct catalog_source *source) {
        if (source->state == CATALOG_SOURCE_OK) {
                size_t runs = 0;

                for (size_t i = 0; i < source->run_count; i++)
                        runs += !catalog_run_is_excluded(source->runs[i]);
                printf("%s: reachable, %zu runs, %zu files", source->name, runs,
                       source->file_count - source->excluded_count);
                if (source->excluded_count > 0)
                        printf(", %zu left out by filters", source->excluded_count);
                putchar('\n');
                check->partly |= source->unreadable_count > 0;
                for (size_t i = 0; i < source->unreadable_count; i++)
                        printf("%s: cannot read %s: %s\n", source->name,
                               source->unreadable[i].directory.bytes,
                               source->unreadable[i].failure.message);
                return;
        }
        printf("%s: %s: %s\n", source->name, source->failure.code, source->failure.message);
        check->failed = true;
}

static void on_listed(void *userdata, struct catalog_source *source, bool complete) {
        struct check *check = userdata;

        if (!complete && source->state != CATALOG_SOURCE_FAILING)
                return; /* it is tried again */
        check_report(check, source);
        check->left--;
        watch_close(source->watch, NULL, NULL);
        source->store->operations->close(source->store, NULL, NULL);
}

static const struct watch_events watch_events = { on_file_changed, on_file_gone, on_listed };

static int check_source(struct check *check, uv_loop_t *loop,
                        const struct config_source *configured) {
        struct catalog_source *source = NULL;
        const char *message = NULL;
        struct store *store = NULL;
        struct filter *filter = NULL;
        int r = filter_new(&configured->filter, (int64_t)time(NULL) * 1000000000, &filter);

        if (r == 0)
                r = store_open_with(loop, configured->url, &configured->access, &store, &message);
        if (r == 0)
                r = catalog_add_source(&check->catalog, configured->name, store, &source);
        if (r < 0) {
                printf("%s: %s\n", configured->url,
                       r == -EEXIST ? "it is there twice"
                       : message    ? message
                                    : strerror(-r));
                check->failed = true;
                filter_free(filter);
                return r == -ENOMEM ? r : 0;
        }
        MUST(source);
        source->filter = filter;
        r = watch_new(loop, source, &(struct watch_options){ .poll_ns = POLL_NEVER }, &watch_events,
                      check, &source->watch);
        if (r < 0) {
                catalog_remove_source(source);
                store->operations->close(store, NULL, NULL);
                return r;
        }
        check->left++;
        return 0;
}

/* Could it listen? */
static void check_socket(struct check *check, const struct config *config) {
        CLEANUP(freep) char *path = NULL, *directory = NULL;
        int r = socket_path_listen(config->socket, &path, &directory);
        char *slash;

        if (r < 0) {
                printf("socket: %s: %s\n", directory ? directory : "?", strerror(-r));
                check->failed = true;
                return;
        }
        free(directory);
        directory = strdup(path);
        slash = directory ? strrchr(directory, '/') : NULL;
        if (slash)
                slash[slash == directory] = '\0';
        if (access(slash ? directory : ".", W_OK | X_OK) < 0) {
                printf("socket: %s: %s\n", slash ? directory : ".", strerror(errno));
                check->failed = true;
                return;
        }
        printf("socket: %s\n", path);
}

/* What the daemon would take of the machine, and which pages it would get. */
static int check_machine(struct check *check, const struct config *config) {
        CLEANUP(freep) char *error = NULL;
        struct sysinfo machine;
        struct ring_status status;
        struct rlimit files;
        struct ring *ring;
        int r = ring_new(config->ring_bytes, (enum ring_huge)config->ring_huge, &ring, &error);

        if (r < 0) {
                printf("ring: %s\n", error ? error : strerror(-r));
                return CHECK_E_SOURCE;
        }
        ring_status(ring, &status);
        sysinfo(&machine);
        getrlimit(RLIMIT_NOFILE, &files);
        printf("memory: ring %llu MiB and at most %llu MiB in flight, of %llu MiB; pages: "
               "%s%s%s%s\n",
               (unsigned long long)(status.size_bytes >> 20),
               (unsigned long long)(config->fetch_inflight_bytes >> 20),
               (unsigned long long)((uint64_t)machine.totalram * machine.mem_unit >> 20),
               status.tier == RING_TIER_4K ? "4k" : "memfd-huge", status.tier_reason[0] ? " (" : "",
               status.tier_reason, status.tier_reason[0] ? ")" : "");
        if (status.size_bytes + config->fetch_inflight_bytes >
            (uint64_t)machine.totalram * machine.mem_unit) {
                printf("memory: that is more than the machine has; make the ring smaller (-m)\n");
                check->failed = true;
        }
        printf("open files: %llu\n", (unsigned long long)files.rlim_max);
        ring_free(ring);
        return 0;
}

int check_run(const struct config *config) {
        struct check check = { 0 };
        uv_loop_t loop;
        int r = uv_loop_init(&loop);

        if (r < 0)
                return r;
        printf("config ok\n");
        check_socket(&check, config);
        r = check_machine(&check, config);
        if (config->source_count == 0)
                printf("no sources: nothing would be loaded\n");
        catalog_init(&check.catalog);
        for (size_t i = 0; r == 0 && i < config->source_count; i++)
                r = check_source(&check, &loop, &config->sources[i]);
        uv_run(&loop, UV_RUN_DEFAULT);
        catalog_deinit(&check.catalog);
        MUST(uv_loop_close(&loop) == 0);
        return r ? r : check.failed ? CHECK_E_SOURCE : check.partly ? CHECK_E_PARTLY : 0;
}
