/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The pipeline: schedules reads by the demand of the readers, hands the bytes to decoder threads,
 * publishes their extents in file order, and lets the readers deliver them. It owns the catalog,
 * the watches, the fetch module, the ring and the decoder threads. Everything here runs on the loop
 * thread.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <uv.h>

#include "daemon/core/config.h"
#include "daemon/discover/catalog.h"
#include "daemon/fetch/fetch.h"
#include "daemon/publish/ring.h"

struct pipeline;

struct pipeline_options {
        uint64_t ring_bytes;
        enum ring_huge huge;
        /* prefer memory that was touched before to new pages (a private daemon) */
        bool keep_small;
        /* 0: one a core, at most 16, at most a sixteenth of the segments */
        unsigned decoders;
        uint64_t inflight_bytes;
        unsigned connections_max;
        /* of fetch.h */
        unsigned window_start;
        uint64_t requests_per_second_max, bytes_per_second_max;
        uint64_t part_bytes;       /* of big files: 4 MiB */
        uint64_t whole_max_bytes;  /* largest file read whole from a server without ranges */
        bool length_crc_only;      /* the CRC of a payload is not checked */
        uint64_t record_max_bytes; /* 0: inflight_bytes */
        uint32_t payload_inline_max_bytes;
        unsigned readers_max; /* 0: as many as the ring has room for */
        int64_t poll_ns;      /* interval of looking at storage, or POLL_* (discover/poll.h) */
        uint64_t requests_per_day_max; /* to one endpoint, then no polls; 0: no limit */
        /* what a request costs, 10^-9 dollars; UINT64_MAX: what the store says */
        uint64_t price_nano_usd[REQUEST_KINDS];
        const char *remember; /* directory for what is known of sources; NULL: forget. Borrowed */
        uint64_t reread_ns;   /* first back-off before doubtful bytes are read again (reread.h) */
        uint64_t (*now_ns)(void); /* of tries that failed; NULL: uv_hrtime() */
        uint64_t hold_ns; /* between two acknowledgements for which bytes are held (hold.h) */
};

/* What happens, for notifications and the log. Any member may be NULL. */
struct pipeline_events {
        /* something of its numbers changed */
        void (*progress)(void *userdata, const struct catalog_source *source);
        void (*run_gone)(void *userdata, const struct catalog_run *run);
        void (*file_replaced)(void *userdata, const struct catalog_file *file);
        /* one more block of it has damage, or its end: first is the first place of that */
        void (*file_damaged)(void *userdata, const struct catalog_file *file,
                             const struct damaged_place *first);
        /* its failure says why */
        void (*file_failed)(void *userdata, const struct catalog_file *file);
        void (*source_failing)(void *userdata, const struct catalog_source *source);
        void (*source_recovered)(void *userdata, const struct catalog_source *source);
        void (*source_added)(void *userdata, const struct catalog_source *source);
        /* it is not found any more, and its files go now; forget it */
        void (*source_removed)(void *userdata, const struct catalog_source *source);
};

struct pipeline_counters {
        uint64_t extents, extent_bytes, records, damaged;
        uint64_t refetched_blocks, recycled_segments;
        uint64_t parts_ahead, parts_ahead_dropped; /* decoded before their turn; of them, in vain */
        uint64_t reread_ranges;                    /* looked damaged, and were read again */
};

int pipeline_new(uv_loop_t *loop, const struct pipeline_options *options,
                 struct pipeline **ret_pipeline);

/*
 * Ends everything; readers must be freed before. on_closed follows when no handle and no thread is
 * left.
 */
void pipeline_close(struct pipeline *pipeline, void (*on_closed)(void *userdata), void *userdata);

void pipeline_listen(struct pipeline *pipeline, const struct pipeline_events *events,
                     void *userdata);

/*
 * Opens the store and starts to watch it. As store_open() and filter_new(), -EEXIST; -EBUSY: that
 * URL is just being removed.
 */
int pipeline_add_source(struct pipeline *pipeline, const struct config_source *configured,
                        const char **ret_message);

/* Somebody asks for something that depends on storage: sources that rest are looked at (watch.h). */
void pipeline_ask(struct pipeline *pipeline);

struct pipeline_polling {
        const char *state;  /* "on", "resting", "stopped", "off" (watch.h) */
        uint64_t wait_ms;   /* until storage is looked at unasked; UINT64_MAX: it is not */
        const char *events; /* "inotify": how changes are heard of; NULL: they are not */
};

void pipeline_polling(const struct catalog_source *source, struct pipeline_polling *ret_polling);

struct catalog *pipeline_catalog(struct pipeline *pipeline);
struct ring *pipeline_ring(struct pipeline *pipeline);
struct fetch *pipeline_fetch(struct pipeline *pipeline);
bool pipeline_checks_payloads(const struct pipeline *pipeline);
const struct pipeline_counters *pipeline_counters(const struct pipeline *pipeline);

/* How many readers the ring has room for at once. */
unsigned pipeline_readers_max(const struct pipeline *pipeline);

/*
 * A request that is answered later: freed after its callback, or by pipeline_request_cancel()
 * without one.
 */
struct pipeline_request;
void pipeline_request_cancel(struct pipeline_request *request);

/*
 * Removes a source: readers get its files as gone, those that read nothing else have failed, and
 * requests for it are answered. on_done follows when all of it but its store is given back. -ENOMEM.
 */
int pipeline_remove_source(struct pipeline *pipeline, struct catalog_source *source,
                           void (*on_done)(void *userdata), void *userdata,
                           struct pipeline_request **ret_request);

/*
 * Lists the source now (NULL: all of them); failure->class is STORE_OK when the listing is complete
 * and its news are known.
 */
int pipeline_reload(struct pipeline *pipeline, struct catalog_source *source,
                    void (*on_done)(void *userdata, const struct store_failure *failure),
                    void *userdata, struct pipeline_request **ret_request);

/*
 * Answers when every file of the listing that is current now (or, if there is none yet, of the
 * first one) is settled. It makes demand, as a session that keeps nothing. failure is that of a
 * source that cannot be listed (class STORE_OK: none).
 */
int pipeline_wait_loaded(struct pipeline *pipeline, struct catalog_source *source,
                         void (*on_done)(void *userdata, const struct catalog_source *failed),
                         void *userdata, struct pipeline_request **ret_request);

/* Positive outcomes that on_payload gets as error. */
#define PIPELINE_E_VERSION_GONE 1
#define PIPELINE_E_UNREADABLE 2

/*
 * Reads one TFRecord again and decodes one value of it: the answer to `payload`. take_memory is the
 * receiver's to free; it is NULL if error is not 0 (-errno or PIPELINE_E_*; failure says why it is
 * unreadable).
 */
int pipeline_payload(struct pipeline *pipeline, uint64_t file_id, uint64_t file_version,
                     uint64_t offset, uint32_t index,
                     void (*on_payload)(void *userdata, int error,
                                        const struct store_failure *failure, void *take_memory,
                                        uint64_t size_bytes),
                     void *userdata, struct pipeline_request **ret_request);

/* Where a walk over a file's damage stands: a TFRecord, and a value of it. */
struct pipeline_place {
        uint64_t offset;
        uint32_t index;
};

/*
 * Names the damaged places of a file that was read, from `from` on, in file order: at most so many
 * (at least one). The blocks that have any are read and decoded again for it; what storage has
 * there now is what is named. next (NULL: there are no more) is where to go on. error as of
 * pipeline_payload(); then there are no places. places are borrowed.
 */
int pipeline_damage(struct pipeline *pipeline, uint64_t file_id, uint64_t file_version,
                    struct pipeline_place from, uint32_t most,
                    void (*on_damage)(void *userdata, int error,
                                      const struct store_failure *failure,
                                      const struct damaged_place *places, uint32_t count,
                                      const struct pipeline_place *next),
                    void *userdata, struct pipeline_request **ret_request);
