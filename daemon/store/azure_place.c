/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/store/azure_place.h"

#include <ctype.h>
#include <errno.h>
#include <string.h>
#include <strings.h>

#include "common/base.h"
#include "daemon/store/percent.h"
#include "daemon/store/secret_file.h"

#define SUFFIX "core.windows.net"

/* ---- Settings ---- */

/* Takes the place of what is there. */
static int set(char **to, const char *text, size_t size) {
        char *copy = strndup(text, size);

        if (!copy)
                return -ENOMEM;
        secret_free(*to);
        *to = copy;
        return 0;
}

static int set_from(char **to, const char *variable) {
        const char *value = getenv(variable);

        if (!value || !*value)
                return 0;
        value += *value == '?';
        return set(to, value, strlen(value));
}

/* "Key=value;Key=value": values may hold "=". */
static int take_connection_string(struct azure_settings *settings, const char *text) {
        const struct {
                const char *key;
                char **to;
        } keys[] = {
                { "AccountName", &settings->account },
                { "AccountKey", &settings->key },
                { "SharedAccessSignature", &settings->sas },
                { "BlobEndpoint", &settings->endpoint },
                { "EndpointSuffix", &settings->suffix },
        };
        int r = 0;

        while (text && *text && r == 0) {
                size_t size = strcspn(text, ";");
                const char *equals = memchr(text, '=', size);
                size_t key_size = equals ? (size_t)(equals - text) : size;

                for (size_t i = 0; equals && i < ARRAY_SIZE(keys) && r == 0; i++) {
                        if (strlen(keys[i].key) == key_size &&
                            strncasecmp(keys[i].key, text, key_size) == 0)
                                r = set(keys[i].to, equals + 1, size - key_size - 1);
                }
                text += size;
                text += *text == ';';
        }
        return r;
}

int azure_settings_from_environment(struct azure_settings *settings) {
        int r;

        *settings = (struct azure_settings){ 0 };
        r = take_connection_string(settings, getenv("AZURE_STORAGE_CONNECTION_STRING"));
        if (r == 0)
                r = set_from(&settings->account, "AZURE_STORAGE_ACCOUNT");
        if (r == 0)
                r = set_from(&settings->key, "AZURE_STORAGE_KEY");
        if (r == 0)
                r = set_from(&settings->sas, "AZURE_STORAGE_SAS_TOKEN");
        if (r == 0)
                r = set_from(&settings->endpoint, "AZURE_STORAGE_ENDPOINT");
        if (r < 0)
                azure_settings_deinit(settings);
        return r;
}

void azure_settings_deinit(struct azure_settings *settings) {
        free(settings->account);
        secret_free(settings->key);
        secret_free(settings->sas);
        free(settings->endpoint);
        free(settings->suffix);
        *settings = (struct azure_settings){ 0 };
}

/* ---- URLs ---- */

struct span {
        const char *at;
        size_t size;
};

static struct span span_until(const char *text, const char *ends) {
        return (struct span){ text, strcspn(text, ends) };
}

/* "account.blob.core.windows.net" or "account.dfs...": the account's part of it, or nothing. */
static struct span account_of(struct span host) {
        const char *dot = memchr(host.at, '.', host.size);
        size_t rest = dot ? host.size - (size_t)(dot - host.at) : 0;

        if (rest > 6 && (strncasecmp(dot, ".blob.", 6) == 0 || strncasecmp(dot, ".dfs.", 5) == 0))
                return (struct span){ host.at, (size_t)(dot - host.at) };
        return (struct span){ NULL, 0 };
}

bool azure_place_is_url(const char *url) {
        struct span host;

        if (strncasecmp(url, "https://", 8) != 0)
                return false;
        host = span_until(url + 8, "/?#");
        return host.size > 17 && account_of(host).size > 0 &&
               memmem(host.at, host.size, ".blob.core.", 11) != NULL;
}

/* Container and prefix behind the host; those of a web address are encoded. */
static int take_path(struct azure_place *place, const char *path, bool has_container,
                     bool is_encoded) {
        struct span container, prefix;

        path += strspn(path, "/");
        if (has_container) {
                container = span_until(path, "/?#");
                if (container.size == 0)
                        return -EINVAL;
                place->container = strndup(container.at, container.size);
                if (!place->container)
                        return -ENOMEM;
                path += container.size;
                path += strspn(path, "/");
        }
        prefix = span_until(path, "?#");
        place->prefix = strndup(prefix.at, prefix.size);
        if (place->prefix && is_encoded)
                prefix.size = percent_decode(place->prefix, prefix.size);
        if (place->prefix && strlen(place->prefix) != prefix.size)
                return -EINVAL; /* a NUL, which no name has */
        while (place->prefix && prefix.size > 0 && place->prefix[prefix.size - 1] == '/')
                place->prefix[--prefix.size] = '\0';
        path += strcspn(path, "?");
        if (*path == '?' && path[1] && !(place->sas = strdup(path + 1)))
                return -ENOMEM;
        return place->prefix ? 0 : -ENOMEM;
}

/* Account and cloud: a secret in a URL must not go to an account of that name elsewhere. */
static int set_host(struct azure_place *place, struct span account, struct span host) {
        const char *service = account.at + account.size + 1;
        const char *dot = memchr(service, '.', host.size - account.size - 1);

        place->account = strndup(account.at, account.size);
        place->suffix = strndup(dot + 1, host.size - (size_t)(dot + 1 - host.at));
        return place->account && place->suffix ? 0 : -ENOMEM;
}

static int take_url(struct azure_place *place, const char *url) {
        const char *rest = strstr(url, "://") + strlen("://");
        struct span host = span_until(rest, "/?#");
        const char *at = memchr(host.at, '@', host.size);
        struct span account;

        if (at) {
                place->container = strndup(host.at, (size_t)(at - host.at));
                if (!place->container)
                        return -ENOMEM;
                host = (struct span){ at + 1, host.size - (size_t)(at + 1 - host.at) };
        }
        account = account_of(host);
        if (account.size > 0 && set_host(place, account, host) < 0)
                return -ENOMEM;
        if (account.size > 0 || at)
                return take_path(place, host.at + host.size, !at,
                                 strncasecmp(url, "https:", 6) == 0);
        return take_path(place, rest, true, false); /* az://container/prefix */
}

/* ---- The endpoint ---- */

static int set_endpoint(struct azure_place *place, const struct azure_settings *settings) {
        const char *host, *path;

        if (place->suffix || !settings->endpoint)
                return asprintf(&place->endpoint, "https://%s.blob.%s", place->account,
                                place->suffix      ? place->suffix
                                : settings->suffix ? settings->suffix
                                                   : SUFFIX) < 0 ||
                                       !(place->base = strdup(""))
                               ? -ENOMEM
                               : 0;
        place->is_custom = true;
        host = strstr(settings->endpoint, "://");
        if (!host)
                return -EINVAL;
        host += strlen("://");
        path = host + strcspn(host, "/?#");
        place->endpoint = strndup(settings->endpoint, (size_t)(path - settings->endpoint));
        place->base = strndup(path, strcspn(path, "?#"));
        if (!place->endpoint || !place->base)
                return -ENOMEM;
        while (*place->base && place->base[strlen(place->base) - 1] == '/')
                place->base[strlen(place->base) - 1] = '\0';
        return 0;
}

static bool is_container(const char *name) {
        for (const char *c = name; *c; c++) {
                if (!isalnum((unsigned char)*c) && *c != '-' && *c != '$')
                        return false;
        }
        return *name;
}

int azure_place_init(struct azure_place *place, const char *url,
                     const struct azure_settings *settings, const char **ret_message) {
        int r;

        *place = (struct azure_place){ 0 };
        *ret_message = "the URL names no container";
        r = take_url(place, url);
        if (r == 0 && !is_container(place->container)) {
                *ret_message = "the name of the container is not one that Azure has";
                r = -EINVAL;
        }
        if (r == 0 && !place->account && settings->account &&
            !(place->account = strdup(settings->account)))
                r = -ENOMEM;
        if (r == 0 && !place->account) {
                *ret_message = "no account: set AZURE_STORAGE_ACCOUNT, or write "
                               "az://ACCOUNT.blob.core.windows.net/CONTAINER";
                r = -EINVAL;
        }
        if (r == 0) {
                *ret_message = "AZURE_STORAGE_ENDPOINT is no URL";
                r = set_endpoint(place, settings);
        }
        if (r < 0)
                azure_place_deinit(place);
        return r;
}

void azure_place_deinit(struct azure_place *place) {
        free(place->account);
        free(place->container);
        free(place->prefix);
        free(place->endpoint);
        free(place->base);
        free(place->suffix);
        secret_free(place->sas);
        *place = (struct azure_place){ 0 };
}
