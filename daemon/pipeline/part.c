/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/pipeline/part.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "common/name_id.h"
#include "daemon/pipeline/hold.h"
#include "daemon/pipeline/part_ahead.h"
#include "daemon/pipeline/part_decode.h"
#include "daemon/pipeline/reader_state.h"
#include "daemon/pipeline/reread.h"

#define SLACK_BYTES 65535u /* read behind the listed end: what was appended since the listing */
#define PARTS_MOST 32u
/* the header of a record, and at the begin of a file all that its version is made of */
#define AWAITED_PART_BYTES NAME_ID_HEAD_BYTES

struct job *part_first(const struct feed *feed) {
        return feed_has_parts(feed) ? list_owner(feed->work->parts.next, struct job, node) : NULL;
}

void part_end(struct job *job) {
        if (!job->decoding) {
                job_end(job);
                return;
        }
        part_ahead_drop(job);
        job->leaving = true;
        list_remove(&job->node);
        list_append(&job->feed->work->leaving, &job->node);
}

void part_drop_all(struct feed *feed) {
        /* a decoder reads its bytes */
        struct job *keep = feed->decoding && !feed->bridging ? part_first(feed) : NULL;

        if (!feed->work)
                return;
        list_for_each(node, &feed->work->parts) {
                struct job *job = list_owner(node, struct job, node);

                if (job != keep)
                        part_end(job);
        }
        feed->paused = false;
        reread_drop(feed);
        hold_check(feed);
}

bool part_is_at_end(const struct feed *feed, const struct job *job) {
        return job->offset + job->result.size_bytes >= feed->file->listed_bytes &&
               job->node.next == &feed->work->parts;
}

uint64_t part_held_offset(const struct feed *feed) {
        return feed->work->carry_bytes > 0 ? feed->work->carry_offset : part_first(feed)->offset;
}

static void on_read(void *userdata, const struct fetch_result *result) {
        struct job *job = userdata;
        struct feed *feed = job->feed;

        job->arrived = true;
        job->result = *result;
        part_decode_advance(feed); /* which may have ended the job */
        pipeline_touch(feed->pipeline);
}

int part_send(struct job *job) {
        return job_start(job, on_read);
}

/*
 * Bytes of the next part: what fits the room, at least one record, no more than is left. 0: the
 * room is too small. Room for less than a segment is not worth a request: it is waited for more.
 */
static uint64_t part_size(const struct feed *feed, uint64_t room_bytes, bool at_least_one) {
        uint64_t left = feed_left(feed), fits = feed_source_bytes(feed, room_bytes);
        uint64_t need = feed->work ? feed->work->need_bytes : 0;
        uint64_t least = min_u64(left, max_u64(feed->pipeline->segment_bytes, need));
        uint64_t size = min_u64(left, max_u64(feed->part_bytes, least));

        if (feed_awaits_record(feed) && !feed_has_parts(feed) &&
            feed->issued_offset == feed->next.offset)
                least = size = min_u64(left, AWAITED_PART_BYTES);
        if (size <= fits)
                return size;
        return fits >= least ? fits : at_least_one ? least : 0;
}

/* Another file has bytes that nobody has asked for yet. */
static bool others_wait(const struct feed *feed) {
        const struct list *hungry = &feed->pipeline->hungry;
        const struct list *first = hungry->next != &feed->queue ? hungry->next : feed->queue.next;

        return first != hungry || !list_is_empty(&feed->pipeline->unread);
}

/* While others wait it is half of the endpoint's window at most. */
static uint64_t most_parts(const struct feed *feed) {
        uint64_t most = min_u64(PARTS_MOST,
                                feed->pipeline->options.inflight_bytes / 2 / feed->part_bytes);
        unsigned window = fetch_window(feed->pipeline->fetch, feed->file->run->source->store);

        return window > 0 && others_wait(feed) ? min_u64(most, max_u64(1, window / 2)) : most;
}

static bool part_has_place(const struct feed *feed) {
        uint64_t count = 0;

        if (!feed_has_parts(feed))
                return true;
        for (const struct list *node = feed->work->parts.next; node != &feed->work->parts;
             node = node->next)
                count++;
        return count < most_parts(feed) && !feed->no_ranges && !feed->checked &&
               !feed_awaits_record(feed);
}

/* The larger of what the listing and the server have said. */
static uint64_t larger_size(const struct feed *feed, uint64_t told_bytes) {
        return feed->file->listed_bytes == UINT64_MAX
                       ? told_bytes
                       : max_u64(told_bytes, feed->file->listed_bytes);
}

bool part_waiter_pays(const struct pipeline *pipeline) {
        return pipeline->waiting > 0 && pipeline->committed_bytes == 0;
}

uint64_t part_committed_bytes(const struct feed *feed) {
        uint64_t bytes = 0;

        for (const struct list *node = feed->work->parts.next; node != &feed->work->parts;
             node = node->next)
                bytes += list_owner(node, struct job, node)->committed_bytes;
        return bytes;
}

int part_issue(struct feed *feed, uint64_t room_bytes, struct reader *charged) {
        uint64_t size = part_size(feed, room_bytes, charged || part_waiter_pays(feed->pipeline));
        struct job *job;
        bool final;
        int r;

        if (size == 0)
                return FEED_E_ROOM;
        if (!part_has_place(feed))
                return FEED_E_BUSY;
        if (feed_need_work(feed) < 0)
                return -ENOMEM;
        job = job_new(feed);
        if (!job)
                return -ENOMEM;
        job->offset = feed->issued_offset;
        if (feed->no_ranges) {
                job->offset = 0;
                size = larger_size(feed, feed->whole_bytes);
        } else if (feed->checked && !feed_has_parts(feed) &&
                   feed->issued_offset == feed->next.offset) {
                job->overlap_bytes = feed->tail_bytes;
                job->offset -= job->overlap_bytes;
        }
        final = feed->no_ranges || size == feed_left(feed);
        job->size_bytes = size + job->overlap_bytes + (final ? SLACK_BYTES : 0);
        r = part_send(job);
        if (r != 0) {
                job_end(job);
                return r;
        }
        job_commit(job, feed_estimate(feed, size), charged);
        list_append(&feed->work->parts, &job->node);
        feed->issued_offset = feed->no_ranges ? max_u64(size, feed->file->listed_bytes)
                                              : feed->issued_offset + size;
        feed->probe = false;
        catalog_set_state(feed->file, CATALOG_LOADING, false);
        if (!feed_is_hungry(feed))
                feed_not_hungry(feed);
        return 0;
}

void part_ask_again(struct feed *feed) {
        part_drop_all(feed);
        part_decode_drop_carry(feed);
        feed->issued_offset = feed_offset(feed);
        if (feed->search_offset > feed->next.offset && feed->checked) {
                feed->search_offset = 0;
                feed->issued_offset = feed->next.offset;
        }
        feed->probe |= feed->file->listed_bytes == UINT64_MAX; /* nobody has said where it ends */
        feed_set_hungry(feed);
}

static void part_learn_version(struct feed *feed, const struct job *job) {
        size_t bytes = (size_t)min_u64(job->result.size_bytes, NAME_ID_HEAD_BYTES);

        if (job->offset > 0 || feed->index.count > 0 || feed->next.offset > 0)
                return;
        feed->file->version = name_id_file_version(job->result.buffer, bytes,
                                                   feed->file->replacements);
        feed->work->identity.file_version = feed->file->version;
        feed_tell_replaced(feed);
        readers_version_known(feed);
}

/* What was read before, as far as the part repeats it, is the same as it was. */
static bool part_continues(const struct feed *feed, const struct job *job) {
        uint64_t tail = feed->next.offset - feed->tail_bytes;

        if (feed->tail_bytes == 0 || tail < job->offset)
                return true; /* it repeats nothing */
        return feed->next.offset <= job->offset + job->result.size_bytes &&
               !memcmp(job->result.buffer + (tail - job->offset),
                       feed->tail + sizeof(feed->tail) - feed->tail_bytes, feed->tail_bytes);
}

/* Tags are only compared, and there is one for each file: its hash does, and is an eighth as long. */
static uint64_t tag_hash(const char *tag) {
        uint64_t hash = name_id_source(tag);

        return hash ? hash : 1;
}

/*
 * The answers of one version have one tag; a file that grows meanwhile gets another one, and must
 * then prove that it only grew.
 */
static bool part_is_of_this_version(const struct feed *feed, const struct job *job) {
        return job->overlap_bytes > 0 || feed->no_ranges || feed->next.offset == 0 ||
               !feed->read_tag || !job->result.tag[0] ||
               feed->read_tag == tag_hash(job->result.tag);
}

/* The server sends whole files only. Larger ones than fetch.whole_max cannot be read from it. */
static void part_read_whole(struct feed *feed, const struct job *job) {
        struct store_failure failure = job->result.failure;
        uint64_t total = job->result.total_bytes;

        if (total <= feed->pipeline->options.whole_max_bytes &&
            (!feed->no_ranges || total > feed->whole_bytes)) {
                feed->no_ranges = true;
                feed->whole_bytes = total;
                part_ask_again(feed);
                return;
        }
        failure.class = STORE_PERMANENT;
        snprintf(failure.code, sizeof(failure.code), "no ranges");
        snprintf(failure.message, sizeof(failure.message),
                 "the server ignores ranges, and the file is larger than fetch.whole_max (%llu "
                 "MiB): raise it, or use a server that knows ranges",
                 (unsigned long long)(feed->pipeline->options.whole_max_bytes >> 20));
        feed_fail(feed, &failure);
}

/* The file is shorter than the listing said: the parts behind this one have nothing. */
static void part_is_last(struct feed *feed, struct job *last, uint64_t end) {
        while (last->node.next != &feed->work->parts)
                part_end(list_owner(last->node.next, struct job, node));
        feed->file->listed_bytes = end;
        feed->issued_offset = end;
}

/*
 * The listing is older than the object: it is asked for again, and meanwhile what there is is read,
 * whatever its version, if it goes on where the old one was read to.
 */
static void part_of_newer_version(struct feed *feed) {
        feed->unguarded = true;
        feed->checked = feed->next.offset > 0;
        part_ask_again(feed);
        watch_now(feed->file->run->source->watch);
}

bool part_accept(struct feed *feed, struct job *job) {
        struct catalog_file *file = feed->file;
        uint64_t end = job->offset + job->result.size_bytes;

        if (job->accepted)
                return true;
        if (job->result.failure.class == STORE_NO_RANGE) {
                part_read_whole(feed, job);
                return false;
        }
        if (job->result.failure.class == STORE_CHANGED && !feed->unguarded) {
                part_of_newer_version(feed);
                return false;
        }
        if (job->result.failure.class != STORE_OK && job->result.failure.class != STORE_END) {
                struct store_failure failure = job->result.failure; /* the job goes with it */

                feed_fail(feed, &failure);
                return false;
        }
        if (!part_is_of_this_version(feed, job)) {
                feed->checked = true;
                part_ask_again(feed);
                return false;
        }
        if (!part_continues(feed, job)) {
                feed_restart(feed);
                return false;
        }
        if (job->result.tag[0])
                feed->read_tag = tag_hash(job->result.tag);
        if (file->listed_bytes == UINT64_MAX) {
                file->listed_bytes = job->result.total_bytes != UINT64_MAX ? job->result.total_bytes
                                                                           : end;
                feed_set_hungry(feed); /* now it is known what is left */
        }
        if (job->result.total_bytes == UINT64_MAX && job->result.size_bytes == job->size_bytes)
                feed->probe = true; /* nobody has said where it ends */
        if (job->result.size_bytes < job->size_bytes && end < file->listed_bytes)
                part_is_last(feed, job, end);
        part_learn_version(feed, job);
        job->accepted = true;
        return true;
}
