/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Demand, the only back-pressure (docs/RING.md): which job goes out next, and whether the ring has
 * room for it. Judged for each reader by itself: (a) there is room that neither it nor another's
 * read-ahead needs, or (b) the job is at its cursor or within its read-ahead, and its quota pays.
 * Without a reader: what was never used of the ring. Loop thread.
 */
#pragma once

#include "daemon/pipeline/pipeline_state.h"

/* Issues every job that may go out now. */
void schedule(struct pipeline *pipeline);
