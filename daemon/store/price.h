/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What requests cost: public list prices of the clouds, for the class in which new objects are
 * stored there, in the region that most prices are quoted for. docs/FETCH.md names the pages that
 * they are from. What else a bill may have (bytes that leave the cloud, other classes of storage,
 * discounts) is not in them.
 */
#pragma once

#include <stdint.h>

#include "daemon/store/request_count.h"

struct store_price {
        const char *name;                 /* for people: "S3 Standard, us-east-1" */
        uint64_t nano_usd[REQUEST_KINDS]; /* of one request, in 10^-9 dollars */
};

extern const struct store_price store_price_s3;
extern const struct store_price store_price_gcs;
extern const struct store_price store_price_azure;

/* Of that many requests, in 10^-9 dollars; 0 if price is NULL. */
uint64_t store_price_of(const struct store_price *price, const uint64_t requests[REQUEST_KINDS]);
