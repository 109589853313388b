/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Where a source in Azure Blob Storage is: account, container, prefix, and the endpoint that has
 * them. The forms of a URL are those of Azure's own tools and of Hadoop's:
 *
 *      az://container/prefix                                  account by AZURE_STORAGE_ACCOUNT
 *      az://account.blob.core.windows.net/container/prefix
 *      abfs[s]://container@account.dfs.core.windows.net/prefix
 *      https://account.blob.core.windows.net/container/prefix[?SAS]     percent-encoded
 */
#pragma once

#include <stdbool.h>

/* What the environment says. Each is memory of its own; NULL: not set. */
struct azure_settings {
        char *account, *key, *sas; /* the SAS without a question mark */
        char *endpoint;            /* of the blob service, with a path perhaps */
        char *suffix;              /* of hosts; NULL: core.windows.net */
};

struct azure_place {
        char *account, *container, *prefix; /* the prefix without slashes around it */
        char *endpoint;                     /* "https://host[:port]" */
        char *base;                         /* path in front of the container: "" or "/account" */
        char *suffix;   /* of the host that the URL names: its cloud; NULL: it names none */
        char *sas;      /* of the URL, without a question mark; NULL: none */
        bool is_custom; /* not one of Azure's own hosts */
};

/*
 * From AZURE_STORAGE_CONNECTION_STRING, and over it AZURE_STORAGE_ACCOUNT, AZURE_STORAGE_KEY,
 * AZURE_STORAGE_SAS_TOKEN and AZURE_STORAGE_ENDPOINT. -ENOMEM.
 */
int azure_settings_from_environment(struct azure_settings *settings);
void azure_settings_deinit(struct azure_settings *settings);

/* Does the https URL name a host of Azure's blob service? */
bool azure_place_is_url(const char *url);

/* -EINVAL: *ret_message (static) says why; -ENOMEM. */
int azure_place_init(struct azure_place *place, const char *url,
                     const struct azure_settings *settings, const char **ret_message);
void azure_place_deinit(struct azure_place *place);
