/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/store/gcs_error.h"

#include <jansson.h>
#include <string.h>

#include "common/base.h"

static void take(char *to, size_t space, const json_t *value) {
        const char *text = json_string_value(value);

        snprintf(to, space, "%.*s", text ? (int)strcspn(text, "\r\n") : 0, text ? text : "");
}

void gcs_error_parse(const char *body, size_t size, struct gcs_error *ret_error) {
        json_t *root = json_loadb(body, size, 0, NULL), *error = json_object_get(root, "error");
        const json_t *first = json_array_get(json_object_get(error, "errors"), 0);

        *ret_error = (struct gcs_error){ .reason = "" };
        take(ret_error->reason, sizeof(ret_error->reason), json_object_get(first, "reason"));
        take(ret_error->message, sizeof(ret_error->message), json_object_get(error, "message"));
        json_decref(root);
}

static const struct {
        const char *reason;
        enum gcs_error_kind kind;
} reasons[] = {
        { "rateLimitExceeded", GCS_ERROR_THROTTLED },
        { "userRateLimitExceeded", GCS_ERROR_THROTTLED },
        { "quotaExceeded", GCS_ERROR_THROTTLED },
        { "dailyLimitExceeded", GCS_ERROR_THROTTLED },
        { "authError", GCS_ERROR_CREDENTIALS },
        { "userProjectMissing", GCS_ERROR_PROJECT },
};

enum gcs_error_kind gcs_error_kind(long status, const struct gcs_error *error) {
        for (size_t i = 0; i < ARRAY_SIZE(reasons); i++) {
                if (strcmp(reasons[i].reason, error->reason) == 0)
                        return reasons[i].kind;
        }
        if (strstr(error->message, "requester pays"))
                return GCS_ERROR_PROJECT;
        return status == 401   ? GCS_ERROR_CREDENTIALS
               : status == 403 ? GCS_ERROR_DENIED
               : status == 404 ? GCS_ERROR_NO_BUCKET
                               : GCS_ERROR_OTHER;
}
