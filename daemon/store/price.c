/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/store/price.h"

#include <stddef.h>

/* https://aws.amazon.com/s3/pricing/: LIST $0.005, GET $0.0004 for 1 000 requests. */
const struct store_price store_price_s3 = {
        .name = "S3 Standard, us-east-1",
        .nano_usd = { [REQUEST_LIST] = 5000, [REQUEST_READ] = 400 },
};

/*
 * https://cloud.google.com/storage/pricing: class A (objects.list) $0.005, class B (objects.get)
 * $0.0004 for 1 000 operations.
 */
const struct store_price store_price_gcs = {
        .name = "Cloud Storage Standard, one region",
        .nano_usd = { [REQUEST_LIST] = 5000, [REQUEST_READ] = 400 },
};

/*
 * https://azure.microsoft.com/pricing/details/storage/blobs/: list operations $0.05, read
 * operations $0.004 for 10 000.
 */
const struct store_price store_price_azure = {
        .name = "Blob Storage hot LRS, East US",
        .nano_usd = { [REQUEST_LIST] = 5000, [REQUEST_READ] = 400 },
};

uint64_t store_price_of(const struct store_price *price, const uint64_t requests[REQUEST_KINDS]) {
        uint64_t sum = 0;

        for (unsigned i = 0; price && i < REQUEST_KINDS; i++)
                sum += price->nano_usd[i] * requests[i];
        return sum;
}
