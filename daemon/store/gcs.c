/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reads go by the JSON API, too, and not by the XML API's /bucket/object: the name is one segment
 * of the path there, with its slashes encoded, so that "a/../b" and "a//b" are what they are for
 * every proxy and emulator on the way.
 */
#include "daemon/store/gcs.h"

#include <ctype.h>
#include <errno.h>
#include <string.h>
#include <strings.h>

#include "common/base.h"
#include "daemon/core/config.h"
#include "daemon/store/failure.h"
#include "daemon/store/gcs_error.h"
#include "daemon/store/gcs_listing.h"
#include "daemon/store/google_credentials.h"
#include "daemon/store/http_answer.h"
#include "daemon/store/object_store.h"
#include "daemon/store/percent.h"
#include "daemon/store/price.h"
#include "daemon/store/types.h"

#define GCS_ENDPOINT "https://storage.googleapis.com"
#define GCS_KEY_MOST_BYTES 1024

static const char fields[] =
        "items(name,size,updated,generation,etag,storageClass),prefixes,nextPageToken";

struct gcs {
        struct object_store objects;
        char *bucket, *project;
};

static struct gcs *gcs_of(struct object_store *store) {
        return (struct gcs *)store;
}

/* ---- Requests ---- */

static void write_parameter(FILE *out, const char *name, const char *value, size_t size) {
        fprintf(out, "&%s=", name);
        percent_write(out, value, size);
}

static void write_project(FILE *out, const struct gcs *gcs) {
        if (gcs->project)
                write_parameter(out, "userProject", gcs->project, strlen(gcs->project));
}

static int finish(FILE *out, struct object_request *request) {
        return fclose(out) == 0 && request->target ? 0 : -ENOMEM;
}

/*
 * Offsets include their beginning and exclude their end, our ranges are the other way round: so a
 * character is added, the least but NUL. What is between holds a NUL, and is no event file.
 */
static void write_offset(FILE *out, const char *name, const char *key) {
        size_t size = strlen(key);

        write_parameter(out, name, key, size);
        if (size < GCS_KEY_MOST_BYTES)
                fputs("%01", out);
}

static int list_request(struct object_store *store, const struct object_list_place *place,
                        struct object_request *request) {
        const struct gcs *gcs = gcs_of(store);
        size_t size;
        FILE *out = open_memstream(&request->target, &size);

        if (!out)
                return -ENOMEM;
        fprintf(out, "/storage/v1/b/%s/o?maxResults=1000", gcs->bucket);
        write_parameter(out, "fields", fields, strlen(fields));
        if (place->prefix_size)
                write_parameter(out, "prefix", place->prefix, place->prefix_size);
        if (place->one_level)
                write_parameter(out, "delimiter", "/", 1);
        if (place->after)
                write_offset(out, "startOffset", place->after);
        /* One of the longest name cannot be made longer: then the core leaves out what is behind. */
        if (place->until && strlen(place->until) < GCS_KEY_MOST_BYTES)
                write_offset(out, "endOffset", place->until);
        if (place->token)
                write_parameter(out, "pageToken", place->token, strlen(place->token));
        write_project(out, gcs);
        return finish(out, request);
}

static bool is_generation(const char *tag) {
        return tag && *tag && strspn(tag, "0123456789") == strlen(tag);
}

static int read_request(struct object_store *store, const char *key, size_t key_size,
                        const struct store_read_range *range, struct object_request *request) {
        const struct gcs *gcs = gcs_of(store);
        size_t size;
        FILE *out = open_memstream(&request->target, &size);

        if (!out)
                return -ENOMEM;
        fprintf(out, "/storage/v1/b/%s/o/", gcs->bucket);
        percent_write(out, key, key_size);
        fputs("?alt=media", out);
        if (is_generation(range->tag))
                write_parameter(out, "ifGenerationMatch", range->tag, strlen(range->tag));
        write_project(out, gcs);
        return finish(out, request);
}

static int sign(struct object_store *store, enum object_operation operation,
                struct object_request *request, const struct credentials_value *value) {
        (void)store;
        (void)operation;
        if (value->anonymous)
                return 0;
        return object_request_add_header(request, "Authorization: Bearer %s", value->token);
}

/* ---- Answers ---- */

static void on_header(struct object_store *store, struct object_reply *reply, const char *name,
                      size_t name_size, const char *value, size_t value_size) {
        static const char generation[] = "x-goog-generation";

        (void)store;
        if (name_size == strlen(generation) && strncasecmp(name, generation, name_size) == 0)
                snprintf(reply->version, sizeof(reply->version), "%.*s", (int)value_size, value);
}

/* There are servers that ignore ifGenerationMatch. */
static bool is_version(struct object_store *store, const struct object_reply *reply,
                       const char *tag) {
        (void)store;
        return !is_generation(tag) || !reply->version[0] || strcmp(reply->version, tag) == 0;
}

/* ---- Errors in words ---- */

static const char *identity_of(const struct object_store *store,
                               const struct credentials_value *value) {
        return value && value->identity ? value->identity
               : store->store.identity  ? store->store.identity
                                        : "nobody";
}

static enum store_failure_class class_of(enum gcs_error_kind kind, long status) {
        struct store_failure failure;

        if (kind == GCS_ERROR_THROTTLED)
                return STORE_THROTTLED;
        failure_set_status(&failure, status, "");
        return failure.class;
}

/* "403 forbidden on objects.list prefix=exp/ (bucket acme-ml), as ..." */
static void tell(struct gcs *gcs, enum object_operation operation, enum gcs_error_kind kind,
                 long status, const struct gcs_error *error, const char *thing,
                 const struct credentials_value *value, struct store_failure *ret_failure) {
        bool is_list = operation == OBJECT_LIST;
        char number[24];

        snprintf(number, sizeof(number), "%ld", status);
        failure_set(ret_failure, class_of(kind, status), error->reason[0] ? error->reason : number,
                    "%s%s%s on %s%s (bucket %s), as %s", number, error->reason[0] ? " " : "",
                    error->reason, is_list ? "objects.list prefix=" : "objects.get ",
                    is_list ? gcs->objects.prefix : thing, gcs->bucket,
                    identity_of(&gcs->objects, value));
}

#define LOG_IN "gcloud auth application-default login, or set GOOGLE_APPLICATION_CREDENTIALS"

static void advise(const struct gcs *gcs, enum object_operation operation, enum gcs_error_kind kind,
                   const struct gcs_error *error, const struct credentials_value *value,
                   struct store_failure *failure) {
        bool is_anonymous = !value || value->anonymous;

        if ((kind == GCS_ERROR_CREDENTIALS || kind == GCS_ERROR_DENIED) && is_anonymous)
                failure_advise(failure, "no credentials were found: " LOG_IN);
        else if (kind == GCS_ERROR_DENIED)
                failure_advise(failure,
                               "needs storage.objects.list and storage.objects.get on bucket %s "
                               "(roles/storage.objectViewer)",
                               gcs->bucket);
        else if (kind == GCS_ERROR_CREDENTIALS)
                failure_advise(failure, "the token was refused: " LOG_IN);
        else if (kind == GCS_ERROR_PROJECT)
                failure_advise(failure, "whoever reads this bucket pays for it: set "
                                        "GOOGLE_CLOUD_QUOTA_PROJECT to a project of yours");
        else if (kind == GCS_ERROR_NO_BUCKET && operation == OBJECT_LIST)
                failure_advise(failure, "look at the bucket's name");
        else if (error->message[0])
                failure_advise(failure, "%s", error->message);
}

static enum object_remedy judge(struct object_store *store, enum object_operation operation,
                                const struct object_reply *reply, const char *thing,
                                const struct credentials_value *value,
                                struct store_failure *ret_failure) {
        struct gcs *gcs = gcs_of(store);
        enum gcs_error_kind kind;
        struct gcs_error error;

        gcs_error_parse(reply->body, reply->body_size, &error);
        kind = gcs_error_kind(reply->answer->status, &error);
        tell(gcs, operation, kind, reply->answer->status, &error, thing, value, ret_failure);
        advise(gcs, operation, kind, &error, value, ret_failure);
        return kind == GCS_ERROR_CREDENTIALS ? OBJECT_REFRESHES : OBJECT_FAILS;
}

/* ---- Life ---- */

static void deinit(struct object_store *store) {
        struct gcs *gcs = gcs_of(store);

        free(gcs->bucket);
        free(gcs->project);
}

static const struct object_dialect dialect = {
        .name = "gcs",
        .page_new = gcs_listing_new,
        .page_feed = gcs_listing_feed,
        .page_end = gcs_listing_end,
        .page_free = gcs_listing_free,
        .list_request = list_request,
        .read_request = read_request,
        .sign = sign,
        .on_header = on_header,
        .judge = judge,
        .is_version = is_version,
        .deinit = deinit,
};

/* What may be in a bucket's name; a domain's has dots. */
static bool is_bucket(const char *bucket, size_t size) {
        for (size_t i = 0; i < size; i++) {
                if (!isalnum((unsigned char)bucket[i]) && !strchr("-._", bucket[i]))
                        return false;
        }
        return size > 0 && size <= 222 && bucket[0] != '.';
}

void gcs_settings_from_environment(struct gcs_settings *ret_settings) {
        const char *endpoint = getenv("STORAGE_EMULATOR_HOST");
        const char *project = getenv("GOOGLE_CLOUD_QUOTA_PROJECT");

        *ret_settings = (struct gcs_settings){
                .endpoint = endpoint && *endpoint ? endpoint : NULL,
                .project = project && *project ? project : NULL,
        };
}

/* Without the slashes, or the path of the API, that some put at its end. NULL: no memory. */
static char *endpoint_of(const struct gcs_settings *settings) {
        const char *text = settings->endpoint ? settings->endpoint : GCS_ENDPOINT;
        const char *scheme = strstr(text, "://") ? "" : "http://";
        const char *host = *scheme ? text : strstr(text, "://") + strlen("://");
        char *endpoint;

        if (asprintf(&endpoint, "%s%.*s", scheme, (int)(host - text + (int)strcspn(host, "/")),
                     text) < 0)
                return NULL;
        return endpoint;
}

static int fill(struct gcs *gcs, const char *url, const struct gcs_settings *settings,
                const char **ret_message) {
        const char *bucket = strstr(url, "://") + strlen("://");
        size_t size = strcspn(bucket, "/");

        if (!is_bucket(bucket, size)) {
                *ret_message = size ? "the name of the bucket is not one that Cloud Storage has"
                                    : "the URL names no bucket";
                return -EINVAL;
        }
        gcs->bucket = strndup(bucket, size);
        if (!gcs->bucket)
                return -ENOMEM;
        if (settings->project && !(gcs->project = strdup(settings->project)))
                return -ENOMEM;
        return 0;
}

/* The rest of the URL, without slashes around it. */
static char *prefix_of(const char *url) {
        const char *bucket = strstr(url, "://") + strlen("://");
        const char *prefix = bucket + strcspn(bucket, "/");
        size_t size;

        prefix += strspn(prefix, "/");
        size = strlen(prefix);
        while (size > 0 && prefix[size - 1] == '/')
                size--;
        return strndup(prefix, size);
}

int gcs_new(uv_loop_t *loop, const char *url, const struct gcs_settings *settings,
            const struct http_client_options *options, struct credentials *take_credentials,
            struct store **ret_store, const char **ret_message) {
        CLEANUP(freep) char *endpoint = endpoint_of(settings), *prefix = prefix_of(url);
        struct gcs *gcs = calloc(1, sizeof(*gcs));
        int r = gcs && endpoint && prefix ? fill(gcs, url, settings, ret_message) : -ENOMEM;

        if (r < 0) {
                if (gcs) {
                        deinit(&gcs->objects);
                        free(gcs);
                }
                credentials_close(take_credentials, NULL, NULL);
                return r;
        }
        r = object_store_open(&gcs->objects, loop, &dialect,
                              &(struct object_store_place){ .url = url,
                                                            .endpoint = endpoint,
                                                            .prefix = prefix,
                                                            .is_custom = settings->endpoint,
                                                            .price = &store_price_gcs,
                                                            .has_shared_tags = true },
                              options, take_credentials, ret_message);
        if (r < 0)
                return r;
        *ret_store = &gcs->objects.store;
        return 0;
}

static int gcs_open(uv_loop_t *loop, const char *url, const struct config_access *access,
                    struct store **ret_store, const char **ret_message) {
        const char *named = getenv("GOOGLE_APPLICATION_CREDENTIALS");
        struct credentials *credentials;
        struct gcs_settings settings;
        int r;

        gcs_settings_from_environment(&settings);
        /* As Google's clients do: an emulator sees no token but of a file that was named. */
        r = google_credentials_new(
                loop, access->anonymous || (settings.endpoint && !(named && *named)), &credentials);
        if (r < 0)
                return r;
        return gcs_new(loop, url, &settings, NULL, credentials, ret_store, ret_message);
}

static const char *const schemes[] = { "gs", NULL };

const struct store_type store_type_gcs = { .name = "gcs",
                                           .schemes = schemes,
                                           .new_with = gcs_open };
