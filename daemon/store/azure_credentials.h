/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What authorises requests to Azure: a SAS, an account's key, or a token of Microsoft Entra ID from
 * wherever Azure's SDKs have it. Of the value, id is the account; secret its key; token a SAS, which
 * begins with a question mark, or else a bearer token. Sources: "DefaultAzureCredential", Azure SDK
 * guides; "Microsoft identity platform and the OAuth 2.0 client credentials flow"; "How to use
 * managed identities on an Azure VM to acquire an access token".
 */
#pragma once

#include "daemon/store/azure_place.h"
#include "daemon/store/credentials.h"

/*
 * The settings and the place are borrowed for the call. is_anonymous: nothing is looked for, requests
 * are not signed. -ENOMEM.
 */
int azure_credentials_new(uv_loop_t *loop, const struct azure_settings *settings,
                          const struct azure_place *place, bool is_anonymous,
                          struct credentials **ret_credentials);
