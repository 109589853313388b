/* SPDX-License-Identifier: Apache-2.0 */
/* Which store a URL belongs to: a table, looked up by scheme. */
#include "daemon/store/store.h"

#include <errno.h>
#include <string.h>
#include <strings.h>

#include "common/base.h"
#include "common/source_url.h"
#include "daemon/core/config.h"
#include "daemon/store/types.h"

static const struct store_type *const types[] = { &store_type_file, &store_type_azure,
                                                  &store_type_gcs,  &store_type_http,
                                                  &store_type_s3,   &store_type_webhdfs };

/* Size of the scheme in front of "://", or of the "file" of file:/path; 0 for a path. */
static size_t scheme_size(const char *url) {
        const char *end = strstr(url, "://");

        if (strncasecmp(url, "file:/", 6) == 0)
                return 4;
        return end && !memchr(url, '/', (size_t)(end - url)) ? (size_t)(end - url) : 0;
}

static bool has_scheme(const struct store_type *type, const char *scheme, size_t size) {
        for (const char *const *known = type->schemes; *known; known++) {
                if (strlen(*known) == size && strncasecmp(*known, scheme, size) == 0)
                        return true;
        }
        return false;
}

/* What of the access is of no use to the type: what to say, or NULL. */
static const char *find_useless(const struct store_type *type, const struct config_access *access) {
        bool for_s3 = access->endpoint || access->region || access->profile ||
                      access->requester_pays;
        bool for_http = access->bearer_file || access->client_certificate || access->client_key;

        if (for_s3 && type != &store_type_s3)
                return "endpoint, region, profile and requester_pays are for s3:// only";
        if (access->anonymous && type != &store_type_s3 && type != &store_type_gcs &&
            type != &store_type_azure)
                return "anonymous is for s3://, gs:// and az:// only";
        if (for_http && type != &store_type_http)
                return "bearer_file, client_certificate and client_key are for http:// and "
                       "https:// only";
        return NULL;
}

static int open_type(const struct store_type *type, uv_loop_t *loop, const char *url,
                     const struct config_access *access, struct store **ret_store,
                     const char **ret_message) {
        const char *useless = find_useless(type, access);

        if (useless) {
                *ret_message = useless;
                return -EINVAL;
        }
        if (type->new_with)
                return type->new_with(loop, url, access, ret_store, ret_message);
        return type->new (loop, url, ret_store, ret_message);
}

int store_open(uv_loop_t *loop, const char *url, struct store **ret_store,
               const char **ret_message) {
        return store_open_with(loop, url, &(struct config_access){ 0 }, ret_store, ret_message);
}

/* Also of an endpoint without a scheme. */
static bool is_link_local(const char *endpoint) {
        CLEANUP(freep) char *url = NULL;

        if (strstr(endpoint, "://"))
                return source_url_is_link_local(endpoint);
        if (asprintf(&url, "http://%s", endpoint) < 0) {
                url = NULL;
                return true;
        }
        return source_url_is_link_local(url);
}

int store_open_with(uv_loop_t *loop, const char *url, const struct config_access *access,
                    struct store **ret_store, const char **ret_message) {
        const char *message =
                "unknown scheme; known are s3://, gs://, az://, webhdfs://, http://, https://, "
                "file:// and plain paths";
        size_t size = scheme_size(url);
        bool is_refused = source_url_is_link_local(url) ||
                          (access->endpoint && is_link_local(access->endpoint));
        int r = -EINVAL;

        if (is_refused)
                message = "link-local addresses are never sources";
        for (size_t i = 0; i < ARRAY_SIZE(types) && !is_refused; i++) {
                if (has_scheme(types[i], url, size) ||
                    (types[i]->claims && types[i]->claims(url))) {
                        r = open_type(types[i], loop, url, access, ret_store, &message);
                        break;
                }
        }
        if (r == -EINVAL && ret_message)
                *ret_message = message;
        return r;
}
