/* SPDX-License-Identifier: Apache-2.0 */
/* What libcurl says of a request that failed, as a failure of storage; whose fault it is included. */
#pragma once

#include <curl/curl.h>
#include <stdbool.h>

#include "daemon/store/http_proxy.h"
#include "daemon/store/store.h"

struct http_failure {
        CURLcode code;
        long os_error;                  /* CURLINFO_OS_ERRNO */
        const char *words;              /* of CURLOPT_ERRORBUFFER; "": none */
        const char *url;                /* what was asked for; the query is not shown */
        bool is_connected;              /* to whom the request goes, or to the proxy */
        long proxy_status;              /* what the proxy answered instead; 0: nothing */
        const struct http_proxy *proxy; /* url NULL: none */
};

void http_failure_tell(const struct http_failure *failure, struct store_failure *ret_failure);
