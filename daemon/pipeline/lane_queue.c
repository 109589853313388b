/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/pipeline/lane_queue.h"

#include "common/base.h"
#include "daemon/core/list.h"

static bool is_before(const struct heap_node *a, const struct heap_node *b) {
        const struct lane_place *x = list_owner(a, struct lane_place, node),
                                *y = list_owner(b, struct lane_place, node);

        if (x->urgency != y->urgency)
                return x->urgency < y->urgency;
        if (x->round != y->round)
                return x->round < y->round;
        if (x->changed_ns != y->changed_ns)
                return x->changed_ns > y->changed_ns;
        return x->serial < y->serial;
}

void lane_queue_init(struct lane_queue *queue) {
        *queue = (struct lane_queue){ .heap = { .is_before = is_before } };
        list_init(&queue->aside);
}

void lane_place_init(struct lane_place *place) {
        *place = (struct lane_place){ 0 };
        list_init(&place->aside);
}

void lane_queue_add(struct lane_queue *queue, struct lane_place *place, enum lane_urgency urgency,
                    int64_t changed_ns) {
        bool is_aside = list_is_linked(&place->aside), is_queued = heap_is_linked(&place->node);

        if ((is_aside || is_queued) && place->urgency <= urgency)
                return;
        heap_remove(&queue->heap, &place->node);
        if (!is_aside && !is_queued) {
                place->changed_ns = changed_ns;
                place->serial = ++queue->serial;
                place->turn_bytes = 0;
                place->round = max_u64(place->round, queue->round);
        }
        place->urgency = urgency;
        if (!is_aside)
                heap_add(&queue->heap, &place->node);
}

void lane_queue_remove(struct lane_queue *queue, struct lane_place *place) {
        heap_remove(&queue->heap, &place->node);
        list_remove(&place->aside);
}

void lane_queue_put_aside(struct lane_queue *queue, struct lane_place *place) {
        heap_remove(&queue->heap, &place->node);
        list_append(&queue->aside, &place->aside);
}

void lane_queue_put_back(struct lane_queue *queue) {
        list_for_each(node, &queue->aside) {
                struct lane_place *place = list_owner(node, struct lane_place, aside);

                list_remove(node);
                heap_add(&queue->heap, &place->node);
        }
}

struct lane_place *lane_queue_first(struct lane_queue *queue) {
        struct heap_node *node = heap_first(&queue->heap);
        struct lane_place *place = node ? list_owner(node, struct lane_place, node) : NULL;

        if (place)
                queue->round = max_u64(queue->round, place->round);
        return place;
}

bool lane_queue_spend(struct lane_queue *queue, struct lane_place *place, uint64_t bytes,
                      uint64_t turn_bytes_most) {
        place->turn_bytes += bytes;
        if (place->turn_bytes < turn_bytes_most || heap_is_alone(&queue->heap, &place->node))
                return false;
        heap_remove(&queue->heap, &place->node);
        place->turn_bytes = 0;
        place->round++;
        heap_add(&queue->heap, &place->node);
        return true;
}
