/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/store/s3.h"

#include <curl/curl.h>
#include <errno.h>
#include <string.h>
#include <strings.h>
#include <time.h>

#include "common/base.h"
#include "daemon/core/config.h"
#include "daemon/store/aws_credentials.h"
#include "daemon/store/aws_sign.h"
#include "daemon/store/http_answer.h"
#include "daemon/store/object_store.h"
#include "daemon/store/percent.h"
#include "daemon/store/price.h"
#include "daemon/store/s3_error.h"
#include "daemon/store/s3_failure.h"
#include "daemon/store/s3_listing.h"
#include "daemon/store/types.h"

struct s3 {
        struct object_store objects;
        struct s3_place place;
        struct aws_sign_key key;
        int64_t skew_s; /* of the server's clock, ahead of ours */
        bool requester_pays;
};

static struct s3 *s3_of(struct object_store *store) {
        return (struct s3 *)store;
}

/* ---- Requests ---- */

/* "/bucket" or "". */
static void write_bucket(FILE *out, const struct s3 *s3) {
        if (s3->place.path_style)
                fprintf(out, "/%s", s3->place.bucket);
}

static void write_parameter(FILE *out, const char *name, const char *value, size_t size) {
        fprintf(out, "&%s=", name);
        percent_write(out, value, size);
}

static int finish(FILE *out, struct object_request *request) {
        return fclose(out) == 0 && request->target ? 0 : -ENOMEM;
}

static int list_request(struct object_store *store, const struct object_list_place *place,
                        struct object_request *request) {
        const struct s3 *s3 = s3_of(store);
        size_t size;
        FILE *out = open_memstream(&request->target, &size);

        if (!out)
                return -ENOMEM;
        write_bucket(out, s3);
        fprintf(out, "%s?list-type=2&encoding-type=url", s3->place.path_style ? "" : "/");
        if (place->prefix_size)
                write_parameter(out, "prefix", place->prefix, place->prefix_size);
        if (place->one_level)
                write_parameter(out, "delimiter", "/", 1);
        if (place->token)
                write_parameter(out, "continuation-token", place->token, strlen(place->token));
        else if (place->after)
                write_parameter(out, "start-after", place->after, strlen(place->after));
        return finish(out, request);
}

static int read_request(struct object_store *store, const char *key, size_t key_size,
                        const struct store_read_range *range, struct object_request *request) {
        const struct s3 *s3 = s3_of(store);
        size_t size;
        FILE *out = open_memstream(&request->target, &size);
        int r;

        if (!out)
                return -ENOMEM;
        write_bucket(out, s3);
        fputc('/', out);
        percent_write_path(out, key, key_size);
        r = finish(out, request);
        if (r == 0 && store->store.has_shared_tags && range->tag && range->tag[0])
                r = object_request_add_header(request, "If-Match: \"%s\"", range->tag);
        return r;
}

/* As libcurl sends it: without the scheme's own port. */
static int host_of(const struct http_url *url, char *ret_host, size_t space) {
        bool is_v6 = strchr(url->host, ':');
        bool is_default = strcmp(url->port, strcmp(url->scheme, "https") == 0 ? "443" : "80") == 0;

        return snprintf(ret_host, space, "%s%s%s%s%s", is_v6 ? "[" : "", url->host,
                        is_v6 ? "]" : "", is_default ? "" : ":",
                        is_default ? "" : url->port) < (int)space
                       ? 0
                       : -EINVAL;
}

static int sign(struct object_store *store, enum object_operation operation,
                struct object_request *request, const struct credentials_value *value) {
        struct s3 *s3 = s3_of(store);
        char host[512], date[17];
        size_t path_size = strcspn(request->target, "?");
        CLEANUP(freep) char *path = NULL, *authorization = NULL;
        struct aws_sign_header headers[5] = {
                { "host", host },
                { "x-amz-content-sha256", AWS_SIGN_EMPTY_SHA256 },
                { "x-amz-date", date },
        };
        size_t count = 3;
        int r = host_of(object_store_endpoint(store), host, sizeof(host));

        (void)operation;
        if (value->anonymous || r < 0)
                return r;
        aws_sign_date((int64_t)time(NULL) + s3->skew_s, date);
        if (value->token)
                headers[count++] = (struct aws_sign_header){ "x-amz-security-token", value->token };
        if (s3->requester_pays)
                headers[count++] = (struct aws_sign_header){ "x-amz-request-payer", "requester" };
        path = strndup(request->target, path_size);
        if (!path)
                return -ENOMEM;
        r = aws_sign(
                &s3->key, value,
                &(struct aws_sign_input){
                        .method = "GET",
                        .path = path,
                        .query = request->target + path_size + (request->target[path_size] == '?'),
                        .headers = headers,
                        .header_count = count,
                        .payload_sha256 = AWS_SIGN_EMPTY_SHA256,
                        .region = s3->place.region,
                        .service = "s3",
                        .date = date,
                },
                &authorization);
        for (size_t i = 1; r == 0 && i < count; i++)
                r = object_request_add_header(request, "%s: %s", headers[i].name, headers[i].value);
        if (r == 0)
                r = object_request_add_header(request, "Authorization: %s", authorization);
        return r;
}

/* ---- Answers ---- */

static void on_header(struct object_store *store, struct object_reply *reply, const char *name,
                      size_t name_size, const char *value, size_t value_size) {
        const struct {
                const char *name;
                char *to;
                size_t space;
        } wanted[] = {
                { "x-amz-bucket-region", reply->region, sizeof(reply->region) },
                { "date", reply->date, sizeof(reply->date) },
                { "x-amz-request-id", reply->request, sizeof(reply->request) },
        };

        (void)store;
        for (size_t i = 0; i < ARRAY_SIZE(wanted); i++) {
                if (name_size == strlen(wanted[i].name) &&
                    strncasecmp(name, wanted[i].name, name_size) == 0)
                        snprintf(wanted[i].to, wanted[i].space, "%.*s", (int)value_size, value);
        }
}

/* ---- Learning ---- */

/* It becomes a part of the name of a host. */
static bool is_region(const char *region) {
        return region[0] &&
               strspn(region, "abcdefghijklmnopqrstuvwxyz0123456789-") == strlen(region);
}

/* True: the bucket is in a region that was not known to be its. */
static bool learn_region(struct s3 *s3, const struct object_reply *reply,
                         const struct s3_error *error) {
        const char *region = reply->region[0] ? reply->region : error->region;
        CLEANUP(freep) char *endpoint = NULL;

        if (!is_region(region) || strcmp(region, s3->place.region) == 0)
                return false;
        snprintf(s3->place.region, sizeof(s3->place.region), "%s", region);
        endpoint = s3_place_endpoint(&s3->place);
        return endpoint && object_store_set_endpoint(&s3->objects, endpoint) == 0;
}

static bool learn_clock(struct s3 *s3, const struct object_reply *reply) {
        time_t server_s = curl_getdate(reply->date, NULL);
        int64_t skew_s = (int64_t)server_s - (int64_t)time(NULL);

        if (server_s == (time_t)-1)
                return false;
        s3->skew_s = skew_s;
        return true;
}

/* ---- Errors ---- */

static enum object_remedy judge(struct object_store *store, enum object_operation operation,
                                const struct object_reply *reply, const char *thing,
                                const struct credentials_value *value,
                                struct store_failure *ret_failure) {
        struct s3 *s3 = s3_of(store);
        struct s3_error error;
        const struct s3_failure_context context = {
                .operation = operation,
                .place = &s3->place,
                .prefix = store->prefix,
                .thing = thing,
                .identity = value && value->identity ? value->identity
                            : store->store.identity  ? store->store.identity
                                                     : "nobody",
                .is_anonymous = !value || value->anonymous,
                .status = reply->answer->status,
                .error = &error,
        };
        enum s3_error_kind kind;

        s3_error_parse(reply->body, reply->body_size, &error);
        kind = s3_failure_kind(&context);
        s3_failure_set(ret_failure, &context);
        if (kind == S3_ERROR_CREDENTIALS)
                return OBJECT_REFRESHES;
        if ((kind == S3_ERROR_REGION || reply->answer->status == 400) &&
            learn_region(s3, reply, &error))
                return OBJECT_LEARNED;
        if (kind == S3_ERROR_CLOCK && learn_clock(s3, reply))
                return OBJECT_LEARNED;
        return OBJECT_FAILS;
}

/* ---- Life ---- */

static void deinit(struct object_store *store) {
        struct s3 *s3 = s3_of(store);

        explicit_bzero(&s3->key, sizeof(s3->key));
        s3_place_deinit(&s3->place);
}

static const struct object_dialect dialect = {
        .name = "s3",
        .page_new = s3_listing_new,
        .page_feed = s3_listing_feed,
        .page_end = s3_listing_end,
        .page_free = s3_listing_free,
        .list_request = list_request,
        .read_request = read_request,
        .sign = sign,
        .on_header = on_header,
        .judge = judge,
        .deinit = deinit,
};

int s3_new(uv_loop_t *loop, const char *url, const struct s3_settings *settings,
           const struct http_client_options *options, struct credentials *take_credentials,
           struct store **ret_store, const char **ret_message) {
        struct http_client_options own = options ? *options : http_client_defaults;
        CLEANUP(freep) char *endpoint = NULL;
        struct s3 *s3 = calloc(1, sizeof(*s3));
        int r = s3 ? s3_place_init(&s3->place, url, settings, ret_message) : -ENOMEM;

        if (r < 0) {
                free(s3);
                credentials_close(take_credentials, NULL, NULL);
                return r;
        }
        s3->requester_pays = settings->requester_pays;
        own.insecure = settings->insecure;
        endpoint = s3_place_endpoint(&s3->place);
        r = object_store_open(&s3->objects, loop, &dialect,
                              &(struct object_store_place){ .url = url,
                                                            .endpoint = endpoint,
                                                            .prefix = s3->place.prefix,
                                                            .is_custom = s3->place.custom,
                                                            .price = &store_price_s3,
                                                            .has_shared_tags = !s3->place.custom },
                              &own, take_credentials, ret_message);
        if (r < 0)
                return r;
        *ret_store = &s3->objects.store;
        return 0;
}

/* What is configured goes before the environment, and that before the shared files. */
static int s3_open(uv_loop_t *loop, const char *url, const struct config_access *access,
                   struct store **ret_store, const char **ret_message) {
        CLEANUP(aws_profiles_deinit) struct aws_profiles profiles = { 0 };
        struct credentials *credentials;
        struct s3_settings settings;
        int r = aws_profiles_load(&profiles);

        if (r < 0)
                return r;
        s3_settings_from_environment(&settings);
        if (access->endpoint)
                settings.endpoint = access->endpoint;
        if (access->region)
                settings.region = access->region;
        settings.profile = access->profile;
        settings.anonymous = access->anonymous;
        settings.requester_pays = access->requester_pays;
        s3_settings_add_profile(&settings, &profiles);
        r = aws_credentials_new(loop, settings.profile, settings.anonymous, &credentials);
        return r < 0 ? r : s3_new(loop, url, &settings, NULL, credentials, ret_store, ret_message);
}

static const char *const schemes[] = { "s3", NULL };

const struct store_type store_type_s3 = { .name = "s3", .schemes = schemes, .new_with = s3_open };
