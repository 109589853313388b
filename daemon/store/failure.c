/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/store/failure.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "common/base.h"
#include "common/utf8.h"

#define FAILURE_LINE_BYTES 240 /* of a message: the rest is for advice */

void failure_clear(struct store_failure *ret_failure) {
        *ret_failure = (struct store_failure){ .class = STORE_OK };
}

static void set_message(struct store_failure *failure, const char *format, va_list arguments) {
        vsnprintf(failure->message, FAILURE_LINE_BYTES, format, arguments);
        utf8_make_printable(failure->message, strlen(failure->message));
}

void failure_advise(struct store_failure *failure, const char *format, ...) {
        size_t size = strlen(failure->message), room = sizeof(failure->message) - size;
        char *at = failure->message + size;
        va_list arguments;
        int written, begin = snprintf(at, room, "\n  ");

        va_start(arguments, format);
        written = begin < (int)room ? vsnprintf(at + begin, room - (size_t)begin, format, arguments)
                                    : -1;
        va_end(arguments);
        if (written < 0 || (size_t)begin + (size_t)written >= room)
                *at = '\0';
        else
                utf8_make_printable(at + begin, (size_t)written);
}

void failure_set(struct store_failure *ret_failure, enum store_failure_class class,
                 const char *code, const char *format, ...) {
        va_list arguments;

        failure_clear(ret_failure);
        ret_failure->class = class;
        snprintf(ret_failure->code, sizeof(ret_failure->code), "%s", code);
        va_start(arguments, format);
        set_message(ret_failure, format, arguments);
        va_end(arguments);
}

/* What may go away by itself. Everything else is for whoever can change rights and mounts. */
static bool errno_is_transient(int error) {
        static const int transient[] = { EIO,        EAGAIN,       EINTR,    ENOMEM,
                                         EMFILE,     ENFILE,       ESTALE,   ETIMEDOUT,
                                         EHOSTDOWN,  EHOSTUNREACH, ENETDOWN, ENETUNREACH,
                                         ECONNRESET, ECONNREFUSED, ENOTCONN, EBUSY,
                                         EREMOTEIO };

        for (size_t i = 0; i < ARRAY_SIZE(transient); i++) {
                if (transient[i] == error)
                        return true;
        }
        return false;
}

void failure_set_errno(struct store_failure *ret_failure, int error, const char *thing) {
        const char *name = strerrorname_np(error);
        char number[16];

        snprintf(number, sizeof(number), "errno %d", error);
        failure_set(ret_failure, errno_is_transient(error) ? STORE_TRANSIENT : STORE_PERMANENT,
                    name ? name : number, "%s: %s",
                    strerrordesc_np(error) ? strerrordesc_np(error) : "unknown error", thing);
}

static const struct {
        int status;
        enum store_failure_class class;
        const char *words;
} statuses[] = {
        { 400, STORE_PERMANENT, "Bad Request" },
        { 401, STORE_PERMANENT, "Unauthorized" },
        { 403, STORE_PERMANENT, "Forbidden" },
        { 404, STORE_PERMANENT, "Not Found" },
        { 405, STORE_PERMANENT, "Method Not Allowed" },
        { 407, STORE_PERMANENT, "Proxy Authentication Required" },
        { 408, STORE_TRANSIENT, "Request Timeout" },
        { 410, STORE_PERMANENT, "Gone" },
        { 412, STORE_CHANGED, "Precondition Failed" },
        { 416, STORE_END, "Range Not Satisfiable" },
        { 425, STORE_TRANSIENT, "Too Early" },
        { 429, STORE_THROTTLED, "Too Many Requests" },
        { 500, STORE_TRANSIENT, "Internal Server Error" },
        { 501, STORE_PERMANENT, "Not Implemented" },
        { 502, STORE_TRANSIENT, "Bad Gateway" },
        { 503, STORE_THROTTLED, "Service Unavailable" },
        { 504, STORE_TRANSIENT, "Gateway Timeout" },
        { 505, STORE_PERMANENT, "HTTP Version Not Supported" },
};

void failure_set_status(struct store_failure *ret_failure, long status, const char *thing) {
        enum store_failure_class class = status >= 500 ? STORE_TRANSIENT : STORE_PERMANENT;
        const char *words = status >= 300 && status < 400 ? "Redirect that is not followed"
                                                          : "Unexpected status";
        char code[16];

        for (size_t i = 0; i < ARRAY_SIZE(statuses); i++) {
                if (statuses[i].status == status) {
                        class = statuses[i].class;
                        words = statuses[i].words;
                }
        }
        snprintf(code, sizeof(code), "%ld", status);
        failure_set(ret_failure, class, code, "%s: %s", words, thing);
}
