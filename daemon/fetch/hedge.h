/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Hedges: where an answer has not begun when nearly all others have, the same bytes are asked for
 * once more, over another address if there is one, and what comes first counts. The second request
 * has a ticket of its own. hedge_budget.h says when.
 */
#pragma once

#include "daemon/fetch/fetch_state.h"

/* A read of the job is under way. */
void hedge_watch(struct fetch_job *job);

/* The job's hedge, if it has one, is not wanted any more. */
void hedge_drop(struct fetch_job *job);
