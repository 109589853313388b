/* SPDX-License-Identifier: Apache-2.0 */
#include "client/lib/subscribe.h"

#include <errno.h>
#include <fnmatch.h>
#include <inttypes.h>
#include <string.h>

#include "client/lib/call.h"
#include "client/lib/payload.h"
#include "client/lib/stream.h"
#include "common/name_id.h"

static const char *const order_names[] = { [HR_ORDER_RUN] = "run", [HR_ORDER_SORTED] = "sorted" };
static const char *const transport_names[] = {
        [HR_TRANSPORT_MAP] = "map", [HR_TRANSPORT_INLINE] = "inline"
};

static const enum restarts_rule purge_rules[] = { [HR_PURGE_NONE] = RESTARTS_NONE,
                                                  [HR_PURGE_START] = RESTARTS_START,
                                                  [HR_PURGE_ORDER] = RESTARTS_ORDER };

json_t *subscribe_hex(uint64_t id) {
        char text[17];

        snprintf(text, sizeof(text), "%016" PRIx64, id);
        return json_string(text);
}

/* ---- The request ----------------------------------------------------------------------------- */

static int append_string(json_t *array, const char *text) {
        return json_array_append_new(array, json_string(text)) < 0 ? -EINVAL : 0;
}

/* A run name as a glob that matches it alone, and what follows. The caller frees it. */
static char *escape_glob(const char *name, const char *suffix) {
        char *escaped = malloc(2 * strlen(name) + strlen(suffix) + 1), *out = escaped;

        if (!escaped)
                return NULL;
        for (; *name; name++) {
                if (strchr("*?[\\", *name))
                        *out++ = '\\';
                *out++ = *name;
        }
        memcpy(out, suffix, strlen(suffix) + 1);
        return escaped;
}

static int append_run(json_t *array, const char *prefix, const char *suffix) {
        CLEANUP(freep) char *glob = escape_glob(prefix, suffix);

        return glob ? append_string(array, glob) : -ENOMEM;
}

/* Runs are named relative to the prefix; the daemon names them relative to the source. */
static int append_runs_below(json_t *array, const char *prefix, const char *const *runs) {
        static const char *const all[] = { "*", NULL };
        int r = 0;

        for (runs = runs ? runs : all; *runs && r == 0; runs++) {
                CLEANUP(freep) char *suffix = NULL;

                if (fnmatch(*runs, ".", 0) == 0)
                        r = append_run(array, prefix, "");
                if (r == 0 && asprintf(&suffix, "/%s", *runs) < 0)
                        return -ENOMEM;
                if (r == 0)
                        r = append_run(array, prefix, suffix);
        }
        return r;
}

static int set_globs(json_t *params, const char *name, const char *prefix,
                     const char *const *globs) {
        json_t *array;
        int r = 0;

        if (!globs && prefix[0] == '\0')
                return 0;
        array = json_array();
        if (prefix[0]) {
                r = append_runs_below(array, prefix, globs);
        } else {
                for (; *globs && r == 0; globs++)
                        r = append_string(array, *globs);
        }
        return json_object_set_new(params, name, array) < 0 && r == 0 ? -ENOMEM : r;
}

static json_t *positions_json(const struct hr_subscription *subscription) {
        json_t *array = json_array();

        for (size_t i = 0; i < subscription->position_count; i++) {
                const struct hr_position *position = &subscription->positions[i];

                json_array_append_new(array,
                                      json_pack("{s:o, s:o, s:I, s:I}", "file",
                                                subscribe_hex(position->file_id), "file_version",
                                                subscribe_hex(position->file_version), "offset",
                                                (json_int_t)position->offset, "index",
                                                (json_int_t)position->index));
        }
        return json_pack("{s:o}", "positions", array);
}

static json_t *from_json(const struct hr_subscription *subscription) {
        if (subscription->from == HR_FROM_POSITIONS)
                return positions_json(subscription);
        return json_string(subscription->from == HR_FROM_NOW ? "now" : "start");
}

static int subscription_json(struct hr_connection *connection,
                             const struct hr_subscription *subscription, json_t **ret_params) {
        json_t *params = json_pack("{s:s, s:b, s:s, s:o*}", "order",
                                   order_names[subscription->order], "follow", subscription->follow,
                                   "transport", transport_names[subscription->transport], "from",
                                   from_json(subscription));
        int r = params ? 0 : -ENOMEM;

        if (r == 0 && connection->source)
                json_object_set_new(params, "source", json_string(connection->source));
        if (r == 0 && !connection->names)
                r = set_globs(params, "runs", hr_prefix(connection), subscription->runs);
        if (r == 0 && subscription->purge == HR_PURGE_NONE)
                r = set_globs(params, "tags", "", subscription->tags);
        if (r == 0 && subscription->purge == HR_PURGE_NONE)
                r = set_globs(params, "plugins", "", subscription->plugins);
        if (r < 0) {
                json_decref(params);
                return link_fail(connection, r, "subscribe: %s",
                                 r == -EINVAL ? "a filter is not UTF-8" : strerror(-r));
        }
        *ret_params = params;
        return 0;
}

/* ---- The answer ------------------------------------------------------------------------------ */

static int copy_globs(const char *const *patterns, struct globs *globs) {
        size_t count = 0;

        while (patterns && patterns[count])
                count++;
        globs->patterns = calloc(count + 1, sizeof(*globs->patterns));
        if (!globs->patterns)
                return -ENOMEM;
        for (; globs->count < count; globs->count++) {
                globs->patterns[globs->count] = strdup(patterns[globs->count]);
                if (!globs->patterns[globs->count])
                        return -ENOMEM;
        }
        return 0;
}

static int stream_new(struct hr_connection *connection, const struct hr_subscription *subscription,
                      struct stream **ret_stream) {
        struct stream *stream = calloc(1, sizeof(*stream));

        if (!stream || copy_globs(subscription->tags, &stream->tags) < 0 ||
            copy_globs(subscription->plugins, &stream->plugins) < 0 ||
            (connection->names && copy_globs(subscription->runs, &stream->runs) < 0)) {
                stream_free(stream);
                return link_fail(connection, -ENOMEM, "%s", strerror(ENOMEM));
        }
        stream->transport = subscription->transport;
        stream->asks_series = subscription->from != HR_FROM_START;
        stream->has_source = connection->source;
        if (stream->has_source)
                stream->source_id = name_id_source(connection->source);
        series_table_init(&stream->table);
        restarts_init(&stream->restarts, purge_rules[subscription->purge]);
        *ret_stream = stream;
        return 0;
}

static int map_ring(struct hr_connection *connection, struct stream *stream) {
        int r;

        if (connection->call.fd_count != 3)
                return link_fail(connection, -EBADF, "%s: sent no memory to map",
                                 hr_daemon_name(connection));
        r = shared_map_open(&stream->map, connection->call.fds);
        return r < 0 ? link_fail(connection, r, "%s: %s", hr_daemon_name(connection),
                                 stream->map.problem)
                     : 0;
}

static bool is_known(const struct hr_subscription *subscription) {
        return subscription->size_bytes == sizeof(*subscription) &&
               (unsigned)subscription->order < ARRAY_SIZE(order_names) &&
               (unsigned)subscription->transport < ARRAY_SIZE(transport_names) &&
               (unsigned)subscription->from <= HR_FROM_POSITIONS &&
               (unsigned)subscription->purge < ARRAY_SIZE(purge_rules);
}

int hr_subscribe(struct hr_connection *connection, const struct hr_subscription *subscription) {
        static const struct hr_subscription everything = HR_SUBSCRIPTION;
        struct stream *stream = NULL;
        json_t *params = NULL;
        int r;

        if (!subscription)
                subscription = &everything;
        if (!is_known(subscription))
                return link_fail(connection, -EINVAL,
                                 "subscribe: not a subscription that this library knows");
        if (connection->stream)
                return link_fail(connection, -EBUSY, "subscribe: there is a subscription already");
        if ((r = subscription_json(connection, subscription, &params)) < 0)
                return r;
        if ((r = stream_new(connection, subscription, &stream)) < 0) {
                json_decref(params);
                return r;
        }
        MUST(stream);
        r = call_start(connection, "subscribe", params);
        if (r == 0)
                r = call_finish(connection, -1);
        if (r == 0 && stream->transport == HR_TRANSPORT_MAP)
                r = map_ring(connection, stream);
        if (r != -EBUSY)
                call_reset(&connection->call);
        if (r == 0)
                connection->stream = stream;
        else
                stream_free(stream);
        return r;
}

/* ---- What the daemon knows ------------------------------------------------------------------- */

static int hex_value(char c) {
        const char *digits = "0123456789abcdef", *at = c ? strchr(digits, c) : NULL;

        return at ? (int)(at - digits) : -1;
}

/* Decodes hex into memory that the caller frees. -EPROTO: it is none. */
static int json_bytes(const json_t *value, uint8_t **ret_bytes, size_t *ret_size) {
        const char *hex = json_string_value(value);
        size_t size = json_string_length(value) / 2;
        CLEANUP(freep) uint8_t *bytes = malloc(size + 1);

        if (!bytes)
                return -ENOMEM;
        for (size_t i = 0; i < size; i++) {
                int high = hex_value(hex[2 * i]), low = hex_value(hex[2 * i + 1]);

                if (high < 0 || low < 0)
                        return -EPROTO;
                bytes[i] = (uint8_t)(high << 4 | low);
        }
        *ret_bytes = steal_pointer(&bytes);
        *ret_size = size;
        return 0;
}

/*
 * The bytes of a name: of KEY_hex where it is no UTF-8. What was decoded is *decoded, the caller's
 * to free.
 */
static int json_name(const json_t *row, const char *key, uint8_t **decoded,
                     struct extent_string *ret_name) {
        json_t *plain = json_object_get(row, key), *hex;
        char hex_key[32];
        size_t size = 0;
        int r;

        snprintf(hex_key, sizeof(hex_key), "%s_hex", key);
        hex = json_object_get(row, hex_key);
        if (!hex) {
                *ret_name = (struct extent_string){ (const uint8_t *)json_string_value(plain),
                                                    json_string_length(plain) };
                return 0;
        }
        r = json_bytes(hex, decoded, &size);
        if (r == 0)
                *ret_name = (struct extent_string){ *decoded, size };
        return r;
}

static int set_series(struct known_series *series, const json_t *row) {
        static const char *const keys[] = { "plugin", "display_name", "description" };
        uint8_t *decoded[ARRAY_SIZE(keys) + 1] = { 0 };
        struct extent_string names[ARRAY_SIZE(keys)] = { 0 };
        json_int_t data_class = json_integer_value(json_object_get(row, "class"));
        size_t size = 0;
        int r = json_bytes(json_object_get(row, "content"), &decoded[ARRAY_SIZE(keys)], &size);

        for (size_t i = 0; i < ARRAY_SIZE(keys) && r == 0; i++)
                r = json_name(row, keys[i], &decoded[i], &names[i]);
        series->metadata.is_given = true;
        if (r == 0)
                r = series_table_set(
                        series,
                        data_class >= 0 && data_class <= HR_CLASS_BLOBS ? (uint8_t)data_class : 0,
                        names[0], (struct extent_string){ decoded[ARRAY_SIZE(keys)], size },
                        names[1], names[2]);
        for (size_t i = 0; i < ARRAY_SIZE(decoded); i++)
                free(decoded[i]);
        return r;
}

bool subscribe_fetch_series(struct hr_connection *connection, const struct hr_position *position,
                            struct known_series *series, int *ret_r) {
        const struct extent_series *row;
        struct extent_view whole;
        bool changed = false;

        *ret_r = payload_fetch(connection, position, &whole);
        if (*ret_r)
                return false;
        row = extent_view_series_of(&whole, extent_view_record(&whole, 0));
        if (row)
                changed = series_table_learn(series, &whole, row, ret_r);
        stream_drop_payload(connection->stream);
        return changed;
}

static uint64_t json_id(const json_t *object, const char *key) {
        const char *hex = json_string_value(json_object_get(object, key));

        return hex ? strtoull(hex, NULL, 16) : 0;
}

/* Where texts were too long for an extent the answer says which value has them. */
static int fetch_left_out(struct hr_connection *connection, struct known_series *series,
                          const json_t *left_out) {
        struct hr_position position = {
                .file_id = json_id(left_out, "file"),
                .file_version = json_id(left_out, "file_version"),
                .offset = (uint64_t)json_integer_value(json_object_get(left_out, "offset")),
                .index = (uint32_t)json_integer_value(json_object_get(left_out, "index")),
        };
        struct metadata without = series->metadata;
        int r;

        if (!json_is_object(left_out))
                return 0;
        series->metadata = (struct metadata){ 0 };
        if (!subscribe_fetch_series(connection, &position, series, &r))
                series->metadata = without;
        return r < 0 ? r : 0;
}

int subscribe_ask_series(struct hr_connection *connection, struct known_series *series) {
        json_t *result = NULL, *row;
        int r = call_json(connection, "series",
                          json_pack("{s:[o]}", "ids", subscribe_hex(series->public.id)), &result);

        if (r == -EBUSY)
                /* the caller has a call of its own under way: the next extent asks again */
                return 0;
        series->was_asked = true;
        if (r > 0)
                return 0; /* the records are of use without it */
        if (r < 0)
                return r;
        row = json_array_get(json_object_get(result, "series"), 0);
        if (row)
                r = set_series(series, row);
        if (row && r == 0)
                r = fetch_left_out(connection, series, json_object_get(row, "left_out"));
        json_decref(result);
        return r < 0 ? link_fail(connection, r, "%s: series: %s", hr_daemon_name(connection),
                                 strerror(-r))
                     : 0;
}

const char *subscribe_source_url(const struct hr_connection *connection, uint64_t source_id) {
        json_t *sources = json_object_get(connection->hello, "sources"), *source;
        size_t index;

        if (connection->source)
                return connection->source;
        json_array_foreach(sources, index, source) {
                const char *url = json_string_value(source);

                if (url && name_id_source(url) == source_id)
                        return url;
        }
        return "";
}
