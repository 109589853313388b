/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/serve/requests_json.h"

#include "common/base.h"

static json_t *by_kind(const uint64_t requests[REQUEST_KINDS]) {
        json_t *object = json_object();

        for (unsigned i = 0; i < REQUEST_KINDS; i++)
                json_object_set_new(object, request_kind_name(i),
                                    json_integer((json_int_t)min_u64(requests[i], INT64_MAX)));
        return object;
}

static json_t *dollars(const struct store_price *price, const uint64_t requests[REQUEST_KINDS]) {
        return json_real((double)store_price_of(price, requests) / 1e9);
}

static bool has_price(const struct store_price *price) {
        for (unsigned i = 0; i < REQUEST_KINDS; i++)
                if (price->nano_usd[i] > 0)
                        return true;
        return false;
}

/* A day at the present rate is null while there is no rate. */
static json_t *cost(const struct catalog_source *source, const uint64_t today[REQUEST_KINDS],
                    int64_t now_s) {
        const struct request_count *count = &source->store->requests;
        uint64_t day[REQUEST_KINDS] = { 0 };
        bool has_rate = request_count_per_day(count, now_s, day);

        return json_pack("{s:o, s:o, s:o}", "total_usd", dollars(&source->price, count->total),
                         "today_usd", dollars(&source->price, today), "day_usd",
                         has_rate ? dollars(&source->price, day) : json_null());
}

json_t *requests_json(const struct catalog_source *source, int64_t now_s) {
        uint64_t today[REQUEST_KINDS] = { 0 };
        json_t *object = by_kind(source->store->requests.total);

        request_count_today(&source->store->requests, now_s, today);
        if (json_object_set_new(object, "repeated", by_kind(source->store->requests.repeated)) ||
            json_object_set_new(object, "today", by_kind(today)) ||
            (has_price(&source->price) &&
             json_object_set_new(object, "cost", cost(source, today, now_s)))) {
                json_decref(object);
                return NULL;
        }
        return object;
}

json_t *requests_json_today(const struct catalog *catalog, const char *endpoint, int64_t now_s) {
        uint64_t today[REQUEST_KINDS] = { 0 };

        catalog_requests_today(catalog, endpoint, now_s, today);
        return by_kind(today);
}

json_t *requests_json_polling(const struct catalog_source *source) {
        struct pipeline_polling polling;

        pipeline_polling(source, &polling);
        return json_pack("{s:s, s:o, s:s*}", "state", polling.state, "next_s",
                         polling.wait_ms == UINT64_MAX ? json_null()
                                                       : json_real((double)polling.wait_ms / 1e3),
                         "events", polling.events);
}
