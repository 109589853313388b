/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/store/hdfs_error.h"

#include <jansson.h>
#include <string.h>

#include "common/base.h"
#include "daemon/store/failure.h"

static const struct {
        const char *exception;
        enum store_failure_class class;
        const char *advice;
} exceptions[] = {
        { "StandbyException", STORE_TRANSIENT, "this NameNode is on standby: name the active one" },
        { "RetriableException", STORE_TRANSIENT, NULL },
        { "SafeModeException", STORE_TRANSIENT, NULL },
        { "FileNotFoundException", STORE_PERMANENT, NULL },
        { "AccessControlException", STORE_PERMANENT,
          "the user needs r on files and r and x on directories (HADOOP_USER_NAME)" },
        { "SecurityException", STORE_PERMANENT,
          "a delegation token is needed: HEADRACE_WEBHDFS_DELEGATION" },
        { "InvalidToken", STORE_PERMANENT,
          "the delegation token has expired: HEADRACE_WEBHDFS_DELEGATION" },
};

void hdfs_error_judge(long status, const char *body, size_t size, const char *thing,
                      struct store_failure *ret_failure) {
        json_t *root = json_loadb(body, size, 0, NULL);
        json_t *remote = json_object_get(root, "RemoteException");
        const char *exception = json_string_value(json_object_get(remote, "exception"));
        const char *message = json_string_value(json_object_get(remote, "message"));
        enum store_failure_class class;
        const char *advice = NULL;

        failure_set_status(ret_failure, status, thing);
        class = ret_failure->class == STORE_END ? STORE_PERMANENT : ret_failure->class;
        if (exception && strcmp(exception, "IOException") == 0 && message &&
            strstr(message, "out of the range"))
                class = STORE_END;
        for (size_t i = 0; exception && i < ARRAY_SIZE(exceptions); i++) {
                if (strcmp(exceptions[i].exception, exception) == 0) {
                        class = exceptions[i].class;
                        advice = exceptions[i].advice;
                }
        }
        if (exception)
                failure_set(ret_failure, class, exception, "%ld %s: %.*s: %s", status, exception,
                            message ? (int)strcspn(message, "\n") : 0, message ? message : "",
                            thing);
        if (status == 401)
                advice = "the cluster wants a login: kinit gets a ticket, or "
                         "HEADRACE_WEBHDFS_DELEGATION has a delegation token";
        if (advice)
                failure_advise(ret_failure, "%s", advice);
        json_decref(root);
}
