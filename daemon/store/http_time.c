/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/store/http_time.h"

#include <curl/curl.h>

#define NS 1000000000

int64_t http_time_parse(const char *text) {
        time_t time_s = curl_getdate(text, NULL);

        if (time_s == (time_t)-1 || time_s > INT64_MAX / NS || time_s < INT64_MIN / NS)
                return INT64_MIN;
        return (int64_t)time_s * NS;
}
