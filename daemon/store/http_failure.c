/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/store/http_failure.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "common/base.h"
#include "daemon/store/failure.h"

static const struct {
        CURLcode code;
        enum store_failure_class class;
        const char *name;
} failures[] = {
        { CURLE_COULDNT_CONNECT, STORE_TRANSIENT, "connect" },
        { CURLE_COULDNT_RESOLVE_HOST, STORE_TRANSIENT, "resolve" },
        { CURLE_OPERATION_TIMEDOUT, STORE_TRANSIENT, "timeout" },
        { CURLE_PARTIAL_FILE, STORE_TRANSIENT, "short" },
        { CURLE_GOT_NOTHING, STORE_TRANSIENT, "no-answer" },
        { CURLE_RECV_ERROR, STORE_TRANSIENT, "receive" },
        { CURLE_SEND_ERROR, STORE_TRANSIENT, "send" },
        { CURLE_SSL_CONNECT_ERROR, STORE_TRANSIENT, "tls" },
        { CURLE_SSL_CERTPROBLEM, STORE_PERMANENT, "client-certificate" },
        { CURLE_PEER_FAILED_VERIFICATION, STORE_PERMANENT, "certificate" },
        { CURLE_SSL_CACERT_BADFILE, STORE_PERMANENT, "ca-bundle" },
        { CURLE_TOO_MANY_REDIRECTS, STORE_PERMANENT, "redirects" },
        { CURLE_UNSUPPORTED_PROTOCOL, STORE_PERMANENT, "protocol" },
        { CURLE_URL_MALFORMAT, STORE_PERMANENT, "url" },
        { CURLE_WRITE_ERROR, STORE_TRANSIENT, "unwanted" },
};

/* Is it certain that the server has no part in it? */
static bool is_of_proxy(const struct http_failure *failure) {
        return failure->proxy->url &&
               (!failure->proxy->shown || failure->proxy_status >= 300 || !failure->is_connected ||
                failure->code == CURLE_COULDNT_RESOLVE_PROXY || failure->code == CURLE_PROXY);
}

static enum store_failure_class class_of(const struct http_failure *failure,
                                         const char **ret_name) {
        enum store_failure_class class = STORE_TRANSIENT;

        *ret_name = "http";
        for (size_t i = 0; i < ARRAY_SIZE(failures); i++) {
                if (failures[i].code == failure->code) {
                        class = failures[i].class;
                        *ret_name = failures[i].name;
                }
        }
        if ((failure->code == CURLE_COULDNT_CONNECT || failure->code == CURLE_RECV_ERROR ||
             failure->code == CURLE_SEND_ERROR) &&
            (failure->os_error == ECONNREFUSED || failure->os_error == ECONNRESET)) {
                class = STORE_THROTTLED; /* what servers with too many connections do */
                *ret_name = failure->os_error == ECONNREFUSED ? "refused" : "reset";
        }
        return class;
}

/* libcurl's own words may have the whole URL of a proxy in them. */
static void tell_of_proxy(const struct http_failure *failure, const char *shown_url,
                          struct store_failure *ret_failure) {
        const struct http_proxy *proxy = failure->proxy;
        const char *words = failure->os_error ? strerrordesc_np((int)failure->os_error) : NULL,
                   *name;
        enum store_failure_class class = class_of(failure, &name);

        if (!proxy->shown) {
                failure_set(ret_failure, STORE_PERMANENT, "proxy",
                            "%s names no proxy that can be used: %s", proxy->variable, shown_url);
                return;
        }
        if (failure->proxy_status >= 300) {
                failure_set_status(ret_failure, failure->proxy_status, proxy->shown);
                failure_set(ret_failure, ret_failure->class, "proxy",
                            "The proxy %s (%s) answered %ld: %s", proxy->shown, proxy->variable,
                            failure->proxy_status, shown_url);
                if (failure->proxy_status == 407)
                        failure_advise(ret_failure,
                                       "it wants a user and a password, or other ones: "
                                       "%s=http://USER:PASSWORD@HOST:PORT",
                                       proxy->variable);
                else
                        failure_advise(ret_failure, "%s and no_proxy say what goes through it",
                                       proxy->variable);
                return;
        }
        failure_set(ret_failure, class, "proxy", "The proxy %s (%s): %s: %s", proxy->shown,
                    proxy->variable, words ? words : curl_easy_strerror(failure->code), shown_url);
        failure_advise(ret_failure, "%s and no_proxy say what goes through it", proxy->variable);
}

void http_failure_tell(const struct http_failure *failure, struct store_failure *ret_failure) {
        CLEANUP(freep) char *url = strndup(failure->url, strcspn(failure->url, "?"));
        const char *shown_url = url ? url : "", *name;
        enum store_failure_class class;

        if (is_of_proxy(failure)) {
                tell_of_proxy(failure, shown_url, ret_failure);
                return;
        }
        class = class_of(failure, &name);
        failure_set(ret_failure, class, name, "%s: %s%s%s",
                    failure->words[0] ? failure->words : curl_easy_strerror(failure->code),
                    shown_url, failure->proxy->url ? " through the proxy " : "",
                    failure->proxy->url ? failure->proxy->shown : "");
        if (failure->code == CURLE_SSL_CERTPROBLEM)
                failure_advise(ret_failure, "client_certificate and client_key of the source are "
                                            "PEM files that belong together; a key with a pass "
                                            "phrase cannot be used");
        else if (failure->code == CURLE_PEER_FAILED_VERIFICATION)
                failure_advise(ret_failure, "CURL_CA_BUNDLE names the authorities that are "
                                            "believed");
}
