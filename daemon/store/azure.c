/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Azure Blob Storage: List Blobs and ranged Get Blob, and nothing else. A listing cannot begin in
 * the middle, so that it is not taken apart.
 */
#include <errno.h>
#include <string.h>
#include <strings.h>
#include <time.h>

#include "common/base.h"
#include "daemon/core/config.h"
#include "daemon/store/azure_credentials.h"
#include "daemon/store/azure_listing.h"
#include "daemon/store/azure_place.h"
#include "daemon/store/azure_sign.h"
#include "daemon/store/failure.h"
#include "daemon/store/object_store.h"
#include "daemon/store/percent.h"
#include "daemon/store/price.h"
#include "daemon/store/s3_error.h"
#include "daemon/store/types.h"

#define AZURE_VERSION "2021-08-06"

struct azure {
        struct object_store objects;
        struct azure_place place;
};

static struct azure *azure_of(struct object_store *store) {
        return (struct azure *)store;
}

/* ---- Requests ---- */

static void write_parameter(FILE *out, const char *name, const char *value, size_t size) {
        fprintf(out, "&%s=", name);
        percent_write(out, value, size);
}

static int list_request(struct object_store *store, const struct object_list_place *place,
                        struct object_request *request) {
        const struct azure *azure = azure_of(store);
        size_t size;
        FILE *out = open_memstream(&request->target, &size);

        if (!out)
                return -ENOMEM;
        fprintf(out, "%s/%s?restype=container&comp=list", azure->place.base,
                azure->place.container);
        if (place->prefix_size)
                write_parameter(out, "prefix", place->prefix, place->prefix_size);
        if (place->one_level)
                write_parameter(out, "delimiter", "/", 1);
        if (place->token)
                write_parameter(out, "marker", place->token, strlen(place->token));
        return fclose(out) == 0 ? 0 : -ENOMEM;
}

static int read_request(struct object_store *store, const char *key, size_t key_size,
                        const struct store_read_range *range, struct object_request *request) {
        const struct azure *azure = azure_of(store);
        size_t size;
        FILE *out = open_memstream(&request->target, &size);
        int r;

        if (!out)
                return -ENOMEM;
        fprintf(out, "%s/%s/", azure->place.base, azure->place.container);
        percent_write_path(out, key, key_size);
        r = fclose(out) == 0 ? 0 : -ENOMEM;
        if (r == 0 && range->tag && range->tag[0])
                r = object_request_add_header(request, "If-Match: \"%s\"", range->tag);
        return r;
}

/* A SAS is a part of the query. */
static int add_sas(struct object_request *request, const char *sas) {
        char *longer;

        if (asprintf(&longer, "%s%s%s", request->target, strchr(request->target, '?') ? "&" : "?",
                     sas + 1) < 0)
                return -ENOMEM;
        free(request->target);
        request->target = longer;
        return 0;
}

/* RFC 9110, 5.6.7. */
static void http_date(char ret_date[32]) {
        static const char days[][4] = { "Sun", "Mon", "Tue", "Wed", "Thu", "Fri", "Sat" };
        static const char months[][4] = { "Jan", "Feb", "Mar", "Apr", "May", "Jun",
                                          "Jul", "Aug", "Sep", "Oct", "Nov", "Dec" };
        time_t now = time(NULL);
        struct tm parts;

        gmtime_r(&now, &parts);
        snprintf(ret_date, 32, "%s, %02d %s %04d %02d:%02d:%02d GMT", days[parts.tm_wday % 7],
                 parts.tm_mday, months[parts.tm_mon % 12], (parts.tm_year + 1900) % 10000,
                 parts.tm_hour, parts.tm_min, parts.tm_sec);
}

static const char *header_of(const struct object_request *request, const char *name) {
        size_t size = strlen(name);

        for (size_t i = 0; i < request->header_count; i++) {
                if (strncasecmp(request->headers[i], name, size) == 0 &&
                    request->headers[i][size] == ':')
                        return request->headers[i] + size + 2;
        }
        return NULL;
}

static int sign_with_key(struct object_request *request, const struct credentials_value *value,
                         const char *date) {
        const struct azure_sign_header headers[] = { { "x-ms-date", date },
                                                     { "x-ms-version", AZURE_VERSION } };
        CLEANUP(freep) char *authorization = NULL;
        char range[64];
        int r;

        snprintf(range, sizeof(range), "bytes=%llu-%llu", (unsigned long long)request->begin,
                 (unsigned long long)(request->begin + request->size_bytes - 1));
        r = azure_sign(value->id, value->secret,
                       &(struct azure_sign_input){
                               .method = "GET",
                               .target = request->target,
                               .range = request->size_bytes ? range : NULL,
                               .if_match = header_of(request, "If-Match"),
                               .headers = headers,
                               .header_count = ARRAY_SIZE(headers),
                       },
                       &authorization);
        return r < 0 ? r : object_request_add_header(request, "Authorization: %s", authorization);
}

static int sign(struct object_store *store, enum object_operation operation,
                struct object_request *request, const struct credentials_value *value) {
        char date[32];
        int r;

        (void)store;
        (void)operation;
        http_date(date);
        r = object_request_add_header(request, "x-ms-version: %s", AZURE_VERSION);
        if (r == 0)
                r = object_request_add_header(request, "x-ms-date: %s", date);
        if (r < 0 || value->anonymous)
                return r;
        if (value->secret)
                return sign_with_key(request, value, date);
        if (value->token[0] == '?')
                return add_sas(request, value->token);
        return object_request_add_header(request, "Authorization: Bearer %s", value->token);
}

/* ---- Answers ---- */

static void on_header(struct object_store *store, struct object_reply *reply, const char *name,
                      size_t name_size, const char *value, size_t value_size) {
        (void)store;
        if (name_size == 15 && strncasecmp(name, "x-ms-error-code", name_size) == 0)
                snprintf(reply->region, sizeof(reply->region), "%.*s", (int)value_size, value);
}

/* What the codes mean that say more than their status. Source: "Blob service error codes". */
static const struct {
        const char *code;
        enum store_failure_class class;
        const char *advice;
} codes[] = {
        { "ServerBusy", STORE_THROTTLED, NULL },
        { "OperationTimedOut", STORE_TRANSIENT, NULL },
        { "InternalError", STORE_TRANSIENT, NULL },
        { "AuthenticationFailed", STORE_PERMANENT,
          "the key, SAS or token is wrong or expired, or the clock of this machine is wrong" },
        { "InvalidAuthenticationInfo", STORE_PERMANENT, "the token is wrong or has expired" },
        { "NoAuthenticationInformation", STORE_PERMANENT, "az login, or AZURE_STORAGE_KEY" },
        { "AuthorizationPermissionMismatch", STORE_PERMANENT,
          "needs the role Storage Blob Data Reader on the container, or a SAS with r and l" },
        { "AuthorizationFailure", STORE_PERMANENT,
          "the account's firewall, or a right that is missing: Storage Blob Data Reader" },
        { "PublicAccessNotPermitted", STORE_PERMANENT, "az login, or AZURE_STORAGE_KEY" },
        { "ContainerNotFound", STORE_PERMANENT, "look at the account's and the container's name" },
        { "BlobArchived", STORE_PERMANENT, "restore it first (az storage blob set-tier)" },
};

static bool is_refusal(const char *code) {
        return strcmp(code, "AuthenticationFailed") == 0 ||
               strcmp(code, "InvalidAuthenticationInfo") == 0;
}

static enum object_remedy judge(struct object_store *store, enum object_operation operation,
                                const struct object_reply *reply, const char *thing,
                                const struct credentials_value *value,
                                struct store_failure *ret_failure) {
        const struct azure *azure = azure_of(store);
        long status = reply->answer->status;
        const char *code, *advice = NULL;
        enum store_failure_class class;
        struct s3_error error;
        char text[24];

        s3_error_parse(reply->body, reply->body_size, &error);
        code = reply->region[0] ? reply->region : error.code;
        failure_set_status(ret_failure, status, thing);
        class = ret_failure->class;
        for (size_t i = 0; i < ARRAY_SIZE(codes); i++) {
                if (strcmp(codes[i].code, code) == 0) {
                        class = codes[i].class;
                        advice = codes[i].advice;
                }
        }
        snprintf(text, sizeof(text), "%ld", status);
        failure_set(ret_failure, class,
                    strcmp(code, "BlobArchived") == 0 ? STORE_CODE_ARCHIVED
                    : code[0]                         ? code
                                                      : text,
                    "%ld %s on %s%s (%s), as %s", status, code,
                    operation == OBJECT_LIST ? "List Blobs prefix=" : "Get Blob ",
                    operation == OBJECT_LIST ? store->prefix : thing, azure->place.endpoint,
                    value && value->identity ? value->identity : "nobody");
        if (advice)
                failure_advise(ret_failure, "%s", advice);
        return is_refusal(code) ? OBJECT_REFRESHES : OBJECT_FAILS;
}

/* ---- Life ---- */

static void deinit(struct object_store *store) {
        azure_place_deinit(&azure_of(store)->place);
}

static const struct object_dialect dialect = {
        .name = "azure",
        .page_new = azure_listing_new,
        .page_feed = azure_listing_feed,
        .page_end = azure_listing_end,
        .page_free = azure_listing_free,
        .list_request = list_request,
        .read_request = read_request,
        .sign = sign,
        .on_header = on_header,
        .judge = judge,
        .deinit = deinit,
};

static int azure_open(uv_loop_t *loop, const char *url, const struct config_access *access,
                      struct store **ret_store, const char **ret_message) {
        struct azure *azure = calloc(1, sizeof(*azure));
        struct credentials *credentials = NULL;
        struct azure_settings settings;
        int r = azure ? azure_settings_from_environment(&settings) : -ENOMEM;

        if (r < 0) {
                free(azure);
                return r;
        }
        r = azure_place_init(&azure->place, url, &settings, ret_message);
        if (r == 0)
                r = azure_credentials_new(loop, &settings, &azure->place, access->anonymous,
                                          &credentials);
        azure_settings_deinit(&settings);
        if (r < 0) {
                azure_place_deinit(&azure->place);
                free(azure);
                return r;
        }
        r = object_store_open(&azure->objects, loop, &dialect,
                              &(struct object_store_place){ .url = url,
                                                            .endpoint = azure->place.endpoint,
                                                            .prefix = azure->place.prefix,
                                                            .is_custom = azure->place.is_custom,
                                                            .price = &store_price_azure,
                                                            .has_shared_tags = true },
                              NULL, credentials, ret_message);
        if (r < 0)
                return r;
        azure->objects.store.is_flat = false;
        *ret_store = &azure->objects.store;
        return 0;
}

static const char *const schemes[] = { "az", "abfs", "abfss", NULL };

const struct store_type store_type_azure = {
        .name = "azure",
        .schemes = schemes,
        .claims = azure_place_is_url,
        .new_with = azure_open,
};
