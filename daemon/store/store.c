/* SPDX-License-Identifier: Apache-2.0 */
/* Which store a URL belongs to: a table, looked up by scheme. */
#include "daemon/store/store.h"

#include <errno.h>
#include <string.h>
#include <strings.h>

#include "common/base.h"
#include "common/source_url.h"
#include "daemon/store/types.h"

static const struct store_type *const types[] = { &store_type_file, &store_type_azure,
                                                  &store_type_gcs, &store_type_http,
                                                  &store_type_s3 };

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

int store_open(uv_loop_t *loop, const char *url, struct store **ret_store,
               const char **ret_message) {
        const char *message = "unknown scheme; known are s3://, gs://, az://, http://, https://, "
                              "file:// and plain paths";
        size_t size = scheme_size(url);
        bool is_refused = source_url_is_link_local(url);
        int r = -EINVAL;

        if (is_refused)
                message = "link-local addresses are never sources";
        for (size_t i = 0; i < ARRAY_SIZE(types) && !is_refused; i++) {
                if (has_scheme(types[i], url, size) ||
                    (types[i]->claims && types[i]->claims(url))) {
                        r = types[i]->new (loop, url, ret_store, &message);
                        break;
                }
        }
        if (r == -EINVAL && ret_message)
                *ret_message = message;
        return r;
}
