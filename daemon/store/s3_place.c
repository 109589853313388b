/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/store/s3_place.h"

#include <ctype.h>
#include <errno.h>
#include <string.h>
#include <strings.h>

#include "common/base.h"

static const char *first_set(const char *const *names) {
        for (; *names; names++) {
                const char *value = getenv(*names);

                if (value && *value)
                        return value;
        }
        return NULL;
}

static bool is_off(const char *name) {
        const char *value = getenv(name);

        return value && (strcmp(value, "0") == 0 || strcasecmp(value, "false") == 0 ||
                         strcasecmp(value, "no") == 0);
}

void s3_settings_from_environment(struct s3_settings *ret_settings) {
        static const char *const endpoints[] = { "AWS_ENDPOINT_URL_S3", "AWS_ENDPOINT_URL",
                                                 "S3_ENDPOINT", NULL };
        static const char *const regions[] = { "AWS_REGION", "AWS_DEFAULT_REGION", "S3_REGION",
                                               NULL };

        *ret_settings = (struct s3_settings){
                .endpoint = first_set(endpoints),
                .region = first_set(regions),
                .plain_http = is_off("S3_USE_HTTPS"),
                .insecure = is_off("S3_VERIFY_SSL"),
        };
}

void s3_settings_add_profile(struct s3_settings *settings, const struct aws_profiles *profiles) {
        const char *profile = settings->profile ? settings->profile : aws_profile_name();

        if (!settings->endpoint)
                settings->endpoint = aws_profiles_get(profiles, "profile", profile, "endpoint_url");
        if (!settings->region)
                settings->region = aws_profiles_get(profiles, "profile", profile, "region");
}

/* Could it be a label of a host's name, which a certificate for *.s3.amazonaws.com covers? */
static bool is_host_label(const char *bucket) {
        for (const char *c = bucket; *c; c++) {
                if (!islower((unsigned char)*c) && !isdigit((unsigned char)*c) && *c != '-')
                        return false;
        }
        return strlen(bucket) <= 63;
}

/* What may be in a bucket's name, also in those of old and of other servers. */
static bool is_bucket(const char *bucket, size_t size) {
        for (size_t i = 0; i < size; i++) {
                if (!isalnum((unsigned char)bucket[i]) && !strchr("-._", bucket[i]))
                        return false;
        }
        return size > 0 && size <= 255 && bucket[0] != '.';
}

static int set_custom(struct s3_place *place, const struct s3_settings *settings) {
        size_t size;

        if (!settings->endpoint)
                return 0;
        if (asprintf(&place->custom, "%s%s",
                     strstr(settings->endpoint, "://") ? ""
                     : settings->plain_http            ? "http://"
                                                       : "https://",
                     settings->endpoint) < 0) {
                place->custom = NULL;
                return -ENOMEM;
        }
        size = strlen(place->custom);
        while (size > 0 && place->custom[size - 1] == '/')
                place->custom[--size] = '\0';
        return 0;
}

int s3_place_init(struct s3_place *place, const char *url, const struct s3_settings *settings,
                  const char **ret_message) {
        const char *bucket = strstr(url, "://") + strlen("://");
        size_t size = strcspn(bucket, "/");
        const char *prefix = bucket + size + strspn(bucket + size, "/");
        size_t prefix_size = strlen(prefix);

        *place = (struct s3_place){ 0 };
        if (!is_bucket(bucket, size)) {
                *ret_message = size ? "the name of the bucket is not one that S3 has"
                                    : "the URL names no bucket";
                return -EINVAL;
        }
        while (prefix_size > 0 && prefix[prefix_size - 1] == '/')
                prefix_size--;
        place->bucket = strndup(bucket, size);
        place->prefix = strndup(prefix, prefix_size);
        if (!place->bucket || !place->prefix || set_custom(place, settings) < 0) {
                s3_place_deinit(place);
                return -ENOMEM;
        }
        snprintf(place->region, sizeof(place->region), "%s",
                 settings->region ? settings->region : "us-east-1");
        place->path_style = place->custom || !is_host_label(place->bucket);
        return 0;
}

void s3_place_deinit(struct s3_place *place) {
        free(place->bucket);
        free(place->prefix);
        free(place->custom);
        *place = (struct s3_place){ 0 };
}

/* Partitions of AWS have domains of their own. */
static const char *domain_of(const char *region) {
        return strncmp(region, "cn-", 3) == 0 ? "amazonaws.com.cn" : "amazonaws.com";
}

char *s3_place_endpoint(const struct s3_place *place) {
        char *endpoint;

        if (place->custom)
                return strdup(place->custom);
        if (asprintf(&endpoint, "https://%s%ss3.%s.%s", place->path_style ? "" : place->bucket,
                     place->path_style ? "" : ".", place->region, domain_of(place->region)) < 0)
                return NULL;
        return endpoint;
}
