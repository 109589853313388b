/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/pipeline/schedule.h"

#include <errno.h>

#include "daemon/pipeline/part.h"
#include "daemon/pipeline/part_decode.h"
#include "daemon/pipeline/reader_state.h"
#include "daemon/pipeline/refetch.h"
#include "daemon/pipeline/residency.h"
#include "daemon/pipeline/unread.h"

/* How far one round got. */
enum outcome {
        OUTCOME_ALL,  /* nothing is left to issue */
        OUTCOME_BUSY, /* nothing but files of which enough is under way */
        /* the window, the budget or memory is used up: an answer that comes brings us back */
        OUTCOME_WINDOW,
        OUTCOME_ROOM, /* the ring has no room */
        OUTCOME_TURN, /* it is another lane's turn */
};

static enum outcome outcome_of(int r) {
        switch (r) {
        case 0:
                return OUTCOME_ALL;
        case FEED_E_BUSY:
                return OUTCOME_BUSY;
        case FEED_E_ROOM:
                return OUTCOME_ROOM;
        default:
                return OUTCOME_WINDOW;
        }
}

/* A lane's turn is over when what it has asked for fills as much as one part. */
static bool turn_is_over(struct lane *lane, uint64_t committed_before_bytes) {
        const struct pipeline *pipeline = lane->reader->pipeline;
        uint64_t bytes = pipeline->committed_bytes > committed_before_bytes
                                 ? pipeline->committed_bytes - committed_before_bytes
                                 : 0;

        return lane_queue_spend(&lane->reader->hungry, &lane->hungry, bytes,
                                pipeline->options.part_bytes);
}

static enum outcome issue_absent(struct cursor *cursor) {
        struct feed *feed = cursor->feed;
        bool waits = false;
        int r = 0;

        for (size_t i = block_index_find(&feed->index, cursor->position);
             r == 0 && i < feed->index.count; i++) {
                struct block *block = feed->index.blocks[i];

                if (!refetch_is_wanted(block))
                        continue;
                if (refetch_is_due(block)) {
                        uint64_t before_bytes = feed->pipeline->committed_bytes;

                        r = refetch_start(feed, block, residency_room_unneeded(feed->pipeline),
                                          NULL);
                        if (r == 0 && turn_is_over(cursor->lane, before_bytes))
                                return OUTCOME_TURN;
                } else {
                        waits = true;
                }
        }
        return r == 0 && waits ? OUTCOME_BUSY : outcome_of(r);
}

/* What is paused goes on before more is asked for. */
static int resume_or_issue(struct feed *feed, uint64_t room_bytes, struct reader *charged) {
        return feed->paused ? part_decode_resume(feed, room_bytes, charged)
                            : part_issue(feed, room_bytes, charged);
}

static bool feed_has_more(const struct feed *feed) {
        return feed->paused || feed_is_hungry(feed);
}

static bool ends_turn(enum outcome outcome) {
        return outcome == OUTCOME_WINDOW || outcome == OUTCOME_ROOM || outcome == OUTCOME_TURN;
}

/* The absent blocks that the cursor wants, then the unread bytes, while there is room. */
static enum outcome issue_for_cursor(struct cursor *cursor) {
        struct feed *feed = cursor->feed;
        enum outcome absent = feed->index.absent > 0 ? issue_absent(cursor) : OUTCOME_ALL;
        enum outcome unread = OUTCOME_ALL;

        if (ends_turn(absent))
                return absent;
        while (unread == OUTCOME_ALL && feed_has_more(feed)) {
                uint64_t before_bytes = feed->pipeline->committed_bytes;

                unread = outcome_of(resume_or_issue(
                        feed, residency_room(feed->pipeline, cursor->reader), NULL));
                if (unread == OUTCOME_ALL && turn_is_over(cursor->lane, before_bytes))
                        return OUTCOME_TURN;
        }
        return unread == OUTCOME_ALL ? absent : unread;
}

static enum outcome issue_for_lane(struct lane *lane) {
        enum outcome all = OUTCOME_ALL;

        while (lane->first < lane->count && lane->cursors[lane->first]->finished)
                lane->first++;
        for (size_t i = lane->first; i < lane->count; i++) {
                enum outcome outcome = lane->cursors[i]->finished
                                               ? OUTCOME_ALL
                                               : issue_for_cursor(lane->cursors[i]);

                if (ends_turn(outcome))
                        return outcome;
                if (outcome == OUTCOME_BUSY)
                        all = outcome;
        }
        return all;
}

/*
 * Rule (a): in turns, while there is room. A lane that has nothing left to fetch is hungry no more.
 */
static enum outcome issue_by_room(struct reader *reader) {
        enum outcome outcome = OUTCOME_ALL;
        struct lane_place *place;

        while (outcome != OUTCOME_WINDOW && outcome != OUTCOME_ROOM &&
               (place = lane_queue_first(&reader->hungry))) {
                outcome = issue_for_lane(list_owner(place, struct lane, hungry));
                if (outcome == OUTCOME_ALL)
                        lane_queue_remove(&reader->hungry, place);
                else if (outcome == OUTCOME_BUSY)
                        lane_queue_put_aside(&reader->hungry, place);
        }
        lane_queue_put_back(&reader->hungry);
        return outcome == OUTCOME_WINDOW || outcome == OUTCOME_ROOM ? outcome : OUTCOME_ALL;
}

struct quota_walk {
        struct reader *reader;
        bool held_back; /* something would go out if the quota allowed it */
};

/* Rule (b), one step of the walk through the read-ahead. */
static bool issue_by_quota(void *userdata, struct feed *feed, struct block *block) {
        struct quota_walk *walk = userdata;
        uint64_t quota_bytes = reader_quota_left(walk->reader) * feed->pipeline->segment_bytes;
        int r = 0;

        if (block ? !refetch_is_wanted(block) || !refetch_is_due(block) : !feed_has_more(feed))
                return true;
        if (quota_bytes == 0) {
                walk->held_back = true;
                return false;
        }
        r = block ? refetch_start(feed, block, quota_bytes, walk->reader)
                  : resume_or_issue(feed, quota_bytes, walk->reader);
        return r == 0 || r == FEED_E_BUSY;
}

static void schedule_reader(struct reader *reader) {
        struct quota_walk walk = { .reader = reader };

        reader->job_held_back = false;
        if (!(reader->open || reader->begun) || reader->ended || reader->failed)
                return;
        if (issue_by_room(reader) != OUTCOME_ROOM)
                return;
        reader->job_held_back = true;
        /*
         * While it has something to deliver, room will come of that; a job that its quota pays for
         * would only throw out what it needs later.
         */
        if (!list_is_empty(&reader->ready))
                return;
        reader_walk(reader, reader_ahead_bytes(reader), issue_by_quota, &walk);
}

/* What a job for nobody, or for those who only wait until all is loaded, may fill. */
static uint64_t unread_room(struct pipeline *pipeline) {
        return pipeline->waiting ? residency_room(pipeline, NULL) : residency_room_unused(pipeline);
}

/* Nothing is under way but what stands behind a part that is paused. */
static bool all_is_paused(const struct pipeline *pipeline) {
        uint64_t bytes = 0;

        for (const struct list *node = pipeline->holding.next; node != &pipeline->holding;
             node = node->next) {
                const struct feed *feed = list_owner(node, struct feed_work, holding)->feed;

                bytes += feed->paused ? part_committed_bytes(feed) : 0;
        }
        return pipeline->committed_bytes == bytes;
}

/*
 * Who waits until all is loaded keeps nothing: when nothing is under way, decoding goes on,
 * whatever is thrown out for it.
 */
static void resume_unread(struct pipeline *pipeline) {
        list_for_each(node, &pipeline->holding) {
                struct feed *feed = list_owner(node, struct feed_work, holding)->feed;
                uint64_t room = unread_room(pipeline);

                if (!feed->paused)
                        continue;
                if (pipeline->waiting > 0 && all_is_paused(pipeline))
                        room = max_u64(room, pipeline->segment_bytes);
                part_decode_resume(feed, room, NULL);
        }
}

struct unread_walk {
        struct pipeline *pipeline;
        size_t full; /* sources whose window is */
};

static bool is_full(const struct unread_walk *walk, const struct catalog_source *source) {
        return source->full_in_pass == walk->pipeline->pass_count;
}

/* False: the walk has ended. */
static bool issue_unread(struct unread_walk *walk, struct feed *feed) {
        struct pipeline *pipeline = walk->pipeline;
        struct catalog_source *source = feed->file->run->source;
        int r = 0;

        while (r == 0 && feed_is_hungry(feed))
                r = part_issue(feed, unread_room(pipeline), NULL);
        if (r == FEED_E_ROOM || r == -ENOMEM)
                return false;
        if (r == FEED_E_WINDOW) {
                source->full_in_pass = pipeline->pass_count;
                walk->full++;
        }
        return walk->full < pipeline->catalog.source_count;
}

/*
 * For nobody, or for those who only wait until all is loaded: in order of arrival, what has been
 * begun first. A source whose window is full is passed over.
 */
static void schedule_unread(struct pipeline *pipeline) {
        struct unread_walk walk = { .pipeline = pipeline };

        list_for_each(node, &pipeline->hungry) {
                struct feed *feed = list_owner(node, struct feed, queue);

                if (!is_full(&walk, feed->file->run->source) && !issue_unread(&walk, feed))
                        return;
        }
        list_for_each(unread, &pipeline->unread) {
                struct catalog_file *file = list_owner(unread, struct catalog_file, unread);
                struct feed *feed;

                if (is_full(&walk, file->run->source))
                        continue;
                if (unread_wake(pipeline, file, &feed) < 0)
                        return;
                if (!feed)
                        list_remove(unread); /* a filter leaves it out by now */
                else if (!issue_unread(&walk, feed))
                        return;
        }
}

void schedule(struct pipeline *pipeline) {
        pipeline->pass_count++;
        if (!list_is_empty(&pipeline->readers)) {
                struct list *first = pipeline->readers.next;

                /* Another one begins each time. */
                list_for_each(node, &pipeline->readers)
                        schedule_reader(list_owner(node, struct reader, node));
                list_remove(first);
                list_append(&pipeline->readers, first);
        }
        resume_unread(pipeline);
        schedule_unread(pipeline);
}
