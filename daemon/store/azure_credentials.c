/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One way that asks a server or a program is under way until its answer comes; the metadata service
 * and the CLI may turn out not to be there, or to have no identity, and the next way is tried.
 */
#include "daemon/store/azure_credentials.h"

#include <errno.h>
#include <jansson.h>
#include <string.h>
#include <time.h>

#include "common/base.h"
#include "daemon/store/command.h"
#include "daemon/store/credentials_chain.h"
#include "daemon/store/failure.h"
#include "daemon/store/http_exchange.h"
#include "daemon/store/percent.h"

#define AUTHORITY "https://login.microsoftonline.com"
#define RESOURCE "https://storage.azure.com/"
#define SCOPE "https://storage.azure.com/.default"
#define METADATA "http://169.254.169.254"
#define METADATA_TIMEOUT_MS 1000
#define CLI_TIMEOUT_MS 30000

struct azure_chain {
        struct credentials_chain chain;
        uv_loop_t *loop;
        char *account, *key, *sas;
        bool is_anonymous;
        struct http_exchange *exchange;
        struct command *command;
        char *identity; /* of what is under way */
};

/* NULL: it is not set, or empty. */
static const char *variable(const char *name) {
        const char *value = getenv(name);

        return value && *value ? value : NULL;
}

/* ---- Values ---- */

static bool copy(char **to, const char *text) {
        *to = text ? strdup(text) : NULL;
        return !text || *to;
}

static int set_value(struct credentials_value *ret_value, const struct azure_chain *chain,
                     const char *secret, const char *token, int64_t expires_s,
                     const char *identity) {
        struct credentials_value value = { .expires_s = expires_s };
        bool well = copy(&value.id, chain->account) && copy(&value.secret, secret) &&
                    copy(&value.token, token) && copy(&value.identity, identity);

        if (!well) {
                credentials_value_deinit(&value);
                return -ENOMEM;
        }
        *ret_value = value;
        return 0;
}

static int64_t number_of(const json_t *value) {
        if (json_is_integer(value))
                return json_integer_value(value);
        return json_is_string(value) ? strtoll(json_string_value(value), NULL, 10) : 0;
}

/* access_token with expires_in or expires_on; accessToken with expires_on or expiresOn (the CLI). */
static int value_of_json(const struct azure_chain *chain, const char *text, size_t size,
                         struct credentials_value *ret_value) {
        json_t *root = json_loadb(text, size, 0, NULL);
        const char *token = json_string_value(json_object_get(root, "access_token"));
        int64_t on_s = number_of(json_object_get(root, "expires_on"));
        int64_t in_s = number_of(json_object_get(root, "expires_in"));
        int r = -EBADMSG;

        if (!token)
                token = json_string_value(json_object_get(root, "accessToken"));
        if (on_s <= 0)
                on_s = (int64_t)time(NULL) + (in_s > 0 ? in_s : 300);
        if (token && *token)
                r = set_value(ret_value, chain, NULL, token, on_s, chain->identity);
        json_decref(root);
        return r;
}

static int set_identity(struct azure_chain *chain, const char *format, const char *who) {
        free(chain->identity);
        if (asprintf(&chain->identity, format, who) < 0) {
                chain->identity = NULL;
                return -ENOMEM;
        }
        return 0;
}

/* ---- Answers ---- */

static void tell_absent(struct azure_chain *chain, const char *why) {
        struct store_failure absent;

        failure_set(&absent, STORE_OK, "", "%s", why);
        credentials_chain_tell(&chain->chain, NULL, &absent);
}

/* 410 is what the metadata service says while it is brought up to date. */
static bool passes(long status, const char *code) {
        return status >= 500 || status == 429 || status == 408 || status == 410 ||
               (code && strcmp(code, "temporarily_unavailable") == 0);
}

/* In words of the server, which do not repeat what was sent. */
static void refuse(struct azure_chain *chain, const struct http_exchange_answer *answer) {
        json_t *root = json_loadb(answer->body, answer->body_size, 0, NULL);
        const char *words = json_string_value(json_object_get(root, "error_description"));
        const char *code = json_string_value(json_object_get(root, "error"));
        struct store_failure failure;

        failure_set(&failure, passes(answer->status, code) ? STORE_TRANSIENT : STORE_PERMANENT,
                    "token", "%ld from the token endpoint, as %s", answer->status, chain->identity);
        if (words)
                failure_advise(&failure, "%.*s", (int)strcspn(words, "\r\n"), words);
        json_decref(root);
        credentials_chain_tell(&chain->chain, NULL, &failure);
}

static void on_token(void *userdata, const struct http_exchange_answer *answer) {
        struct azure_chain *chain = userdata;
        struct credentials_value value;

        chain->exchange = NULL;
        if (answer->failure.class != STORE_OK)
                credentials_chain_tell(&chain->chain, NULL, &answer->failure);
        else if (answer->status == 200 &&
                 value_of_json(chain, answer->body, answer->body_size, &value) == 0)
                credentials_chain_tell(&chain->chain, &value, NULL);
        else
                refuse(chain, answer);
}

/* Where there is no Azure nobody answers, or not as it would; a machine may have no identity (400). */
static void on_metadata(void *userdata, const struct http_exchange_answer *answer) {
        struct azure_chain *chain = userdata;
        bool has_answer = answer->failure.class == STORE_OK;

        if (has_answer && answer->status != 404 && answer->status != 400) {
                on_token(userdata, answer);
                return;
        }
        chain->exchange = NULL;
        tell_absent(chain, has_answer && answer->status == 400 ? "this machine has no identity"
                                                               : "no metadata service");
}

static void on_cli(void *userdata, const struct command_result *result) {
        struct azure_chain *chain = userdata;
        struct credentials_value value;

        chain->command = NULL;
        if (!result->error && !result->timed_out && result->exit_code == 0 &&
            value_of_json(chain, result->output, result->output_size, &value) == 0) {
                credentials_chain_tell(&chain->chain, &value, NULL);
                return;
        }
        tell_absent(chain, result->error      ? strerror(-result->error)
                           : result->words[0] ? result->words
                                              : "az login");
}

/* ---- Ways ---- */

static int by_sas(struct azure_chain *chain, struct credentials_value *ret_value, char *why) {
        CLEANUP(freep) char *token = NULL;
        int r;

        if (!chain->sas) {
                snprintf(why, CREDENTIALS_WHY_BYTES, "AZURE_STORAGE_SAS_TOKEN is not set");
                return CREDENTIALS_ABSENT;
        }
        if (asprintf(&token, "?%s", chain->sas) < 0) {
                token = NULL;
                return -ENOMEM;
        }
        r = set_value(ret_value, chain, NULL, token, CREDENTIALS_NEVER, "a SAS");
        explicit_bzero(token, strlen(token));
        return r < 0 ? r : CREDENTIALS_READY;
}

static int by_key(struct azure_chain *chain, struct credentials_value *ret_value, char *why) {
        char identity[160];
        int r;

        if (!chain->key) {
                snprintf(why, CREDENTIALS_WHY_BYTES, "AZURE_STORAGE_KEY is not set");
                return CREDENTIALS_ABSENT;
        }
        snprintf(identity, sizeof(identity), "the key of account %s", chain->account);
        r = set_value(ret_value, chain, chain->key, NULL, CREDENTIALS_NEVER, identity);
        return r < 0 ? r : CREDENTIALS_READY;
}

static void write_field(FILE *out, const char *name, const char *value) {
        fprintf(out, "&%s=", name);
        percent_write(out, value, strlen(value));
}

/* The caller's to free; NULL: no memory. */
static char *authority_url(const char *authority, const char *tenant) {
        char *url = NULL;
        size_t size;
        FILE *out = open_memstream(&url, &size);

        if (!out)
                return NULL;
        fprintf(out, "%s%s", authority, authority[strlen(authority) - 1] == '/' ? "" : "/");
        percent_write(out, tenant, strlen(tenant));
        fputs("/oauth2/v2.0/token", out);
        if (fclose(out) == 0)
                return url;
        free(url);
        return NULL;
}

/* secret or assertion; both may be wiped afterwards. */
static int ask_authority(struct azure_chain *chain, const char *tenant, const char *client,
                         const char *secret, const char *assertion) {
        static const char *const headers[] = { "Content-Type: application/x-www-form-urlencoded",
                                               NULL };
        const char *authority = variable("AZURE_AUTHORITY_HOST");
        CLEANUP(freep) char *url = authority_url(authority ? authority : AUTHORITY, tenant);
        CLEANUP(freep) char *body = NULL;
        size_t size;
        FILE *out = url ? open_memstream(&body, &size) : NULL;
        int r;

        if (!out)
                return -ENOMEM;
        fputs("grant_type=client_credentials&scope=" SCOPE, out);
        write_field(out, "client_id", client);
        if (secret)
                write_field(out, "client_secret", secret);
        else
                fputs("&client_assertion_type=urn%3Aietf%3Aparams%3Aoauth%3Aclient-assertion-type"
                      "%3Ajwt-bearer",
                      out);
        if (assertion)
                write_field(out, "client_assertion", assertion);
        if (fclose(out) != 0)
                return -ENOMEM;
        r = http_exchange_start(chain->loop,
                                &(struct http_exchange_query){ .url = url,
                                                               .method = "POST",
                                                               .headers = headers,
                                                               .body = body,
                                                               .body_size = size,
                                                               .requests = &chain->chain.requests },
                                on_token, chain, &chain->exchange);
        explicit_bzero(body, size);
        return r;
}

static int by_client_secret(struct azure_chain *chain, struct credentials_value *ret_value,
                            char *why) {
        const char *tenant = variable("AZURE_TENANT_ID"), *client = variable("AZURE_CLIENT_ID");
        const char *secret = variable("AZURE_CLIENT_SECRET");
        int r;

        (void)ret_value;
        if (!tenant || !client || !secret) {
                snprintf(why, CREDENTIALS_WHY_BYTES, "%s is not set",
                         !tenant   ? "AZURE_TENANT_ID"
                         : !client ? "AZURE_CLIENT_ID"
                                   : "AZURE_CLIENT_SECRET");
                return CREDENTIALS_ABSENT;
        }
        r = set_identity(chain, "application %s", client);
        if (r == 0)
                r = ask_authority(chain, tenant, client, secret, NULL);
        return r < 0 ? r : CREDENTIALS_RUNNING;
}

static int by_workload(struct azure_chain *chain, struct credentials_value *ret_value, char *why) {
        const char *path = variable("AZURE_FEDERATED_TOKEN_FILE");
        const char *tenant = variable("AZURE_TENANT_ID"), *client = variable("AZURE_CLIENT_ID");
        char *token;
        int r;

        (void)ret_value;
        if (!path || !tenant || !client) {
                snprintf(why, CREDENTIALS_WHY_BYTES, "AZURE_FEDERATED_TOKEN_FILE is not set");
                return CREDENTIALS_ABSENT;
        }
        r = secret_file_read(path, &token, NULL);
        if (r < 0 && r != -ENOMEM) {
                secret_watch_add(&chain->chain.watch, path);
                snprintf(why, CREDENTIALS_WHY_BYTES, "%s: %s", path, strerror(-r));
                return CREDENTIALS_BROKEN;
        }
        if (r < 0)
                return r;
        token[strcspn(token, "\r\n")] = '\0';
        r = set_identity(chain, "workload identity %s", client);
        if (r == 0)
                r = ask_authority(chain, tenant, client, NULL, token);
        secret_free(token);
        return r < 0 ? r : CREDENTIALS_RUNNING;
}

/* The caller's to free; NULL: no memory. */
static char *managed_url(bool is_service, const char *client) {
        const char *host = variable("AZURE_POD_IDENTITY_AUTHORITY_HOST");
        char *url = NULL;
        size_t size;
        FILE *out = open_memstream(&url, &size);

        if (!out)
                return NULL;
        if (is_service)
                fprintf(out, "%s?api-version=2019-08-01", variable("IDENTITY_ENDPOINT"));
        else
                fprintf(out, "%s/metadata/identity/oauth2/token?api-version=2018-02-01",
                        host ? host : METADATA);
        fputs("&resource=" RESOURCE, out);
        if (client)
                write_field(out, "client_id", client);
        if (fclose(out) == 0)
                return url;
        free(url);
        return NULL;
}

/* App Service and Functions have an endpoint of their own, virtual machines one for all. */
static int by_managed_identity(struct azure_chain *chain, struct credentials_value *ret_value,
                               char *why) {
        const char *secret = variable("IDENTITY_HEADER");
        bool is_service = variable("IDENTITY_ENDPOINT") && secret;
        CLEANUP(freep) char *url = managed_url(is_service, variable("AZURE_CLIENT_ID"));
        CLEANUP(freep) char *header = NULL;
        const char *headers[2] = { "Metadata: true", NULL };
        int r = url ? set_identity(chain, "managed identity%s", "") : -ENOMEM;

        (void)ret_value;
        (void)why;
        if (is_service) {
                if (asprintf(&header, "X-IDENTITY-HEADER: %s", secret) < 0) {
                        header = NULL;
                        return -ENOMEM;
                }
                headers[0] = header;
        }
        if (r == 0)
                r = http_exchange_start(chain->loop,
                                        &(struct http_exchange_query){
                                                .url = url,
                                                .headers = headers,
                                                .timeout_ms = METADATA_TIMEOUT_MS,
                                                .tries = 2,
                                                .no_proxy = true,
                                                .requests = &chain->chain.requests,
                                        },
                                        is_service ? on_token : on_metadata, chain,
                                        &chain->exchange);
        if (header)
                explicit_bzero(header, strlen(header));
        return r < 0 ? r : CREDENTIALS_RUNNING;
}

static int by_cli(struct azure_chain *chain, struct credentials_value *ret_value, char *why) {
        char *arguments[] = { (char *)"az",
                              (char *)"account",
                              (char *)"get-access-token",
                              (char *)"--resource",
                              (char *)RESOURCE,
                              (char *)"--output",
                              (char *)"json",
                              NULL };
        int r = set_identity(chain, "the login of the Azure CLI%s", "");

        (void)ret_value;
        (void)why;
        if (r == 0)
                r = command_start(chain->loop, arguments, CLI_TIMEOUT_MS, on_cli, chain,
                                  &chain->command);
        return r < 0 ? r : CREDENTIALS_RUNNING;
}

static const struct {
        const char *name;
        int (*start)(struct azure_chain *chain, struct credentials_value *ret_value, char *why);
} ways[] = {
        { "SAS", by_sas },
        { "key", by_key },
        { "client secret", by_client_secret },
        { "workload identity", by_workload },
        { "managed identity", by_managed_identity },
        { "Azure CLI", by_cli },
};

/* ---- The chain ---- */

static int be_nobody(const struct azure_chain *chain, struct credentials_value *ret_value) {
        int r = set_value(ret_value, chain, NULL, NULL, CREDENTIALS_NEVER, "anonymous");

        if (r < 0)
                return r;
        ret_value->anonymous = true;
        return CREDENTIALS_READY;
}

static const char *way_name(void *owner, size_t way) {
        (void)owner;
        return way < ARRAY_SIZE(ways) ? ways[way].name : NULL;
}

static int way_start(void *owner, size_t way, struct credentials_value *ret_value,
                     char why[CREDENTIALS_WHY_BYTES]) {
        struct azure_chain *chain = owner;

        return chain->is_anonymous ? be_nobody(chain, ret_value)
                                   : ways[way].start(chain, ret_value, why);
}

static const struct credentials_chain_type chain_type = {
        .whose = "Azure",
        .name = way_name,
        .start = way_start,
};

static int chain_refresh(void *provider, credentials_on_value *on_value, void *userdata) {
        credentials_chain_start(&((struct azure_chain *)provider)->chain, on_value, userdata);
        return 0;
}

static void chain_cancel(void *provider) {
        struct azure_chain *chain = provider;

        credentials_chain_stop(&chain->chain);
        if (chain->exchange)
                http_exchange_cancel(steal_pointer(&chain->exchange));
        if (chain->command)
                command_cancel(steal_pointer(&chain->command));
}

static bool chain_has_changed(void *provider) {
        return secret_watch_has_changed(&((struct azure_chain *)provider)->chain.watch);
}

static uint64_t chain_take_requests(void *provider) {
        return credentials_chain_take_requests(&((struct azure_chain *)provider)->chain);
}

static void free_texts(struct azure_chain *chain) {
        free(chain->account);
        secret_free(chain->key);
        secret_free(chain->sas);
        free(chain->identity);
}

static void chain_free(void *provider) {
        struct azure_chain *chain = provider;

        free_texts(chain);
        credentials_chain_deinit(&chain->chain);
        free(chain);
}

static const struct credentials_provider operations = {
        .name = "azure",
        .refresh = chain_refresh,
        .cancel = chain_cancel,
        .has_changed = chain_has_changed,
        .take_requests = chain_take_requests,
        .free = chain_free,
};

int azure_credentials_new(uv_loop_t *loop, const struct azure_settings *settings,
                          const struct azure_place *place, bool is_anonymous,
                          struct credentials **ret_credentials) {
        struct azure_chain *chain = calloc(1, sizeof(*chain));
        /* A key or a SAS of the environment is of its account, and of no other. */
        bool is_its = !settings->account || strcmp(settings->account, place->account) == 0;
        bool well;

        if (!chain)
                return -ENOMEM;
        chain->loop = loop;
        chain->is_anonymous = is_anonymous;
        well = copy(&chain->account, place->account) &&
               copy(&chain->key, is_its ? settings->key : NULL) &&
               copy(&chain->sas, place->sas ? place->sas
                                 : is_its   ? settings->sas
                                            : NULL);
        if (!well || credentials_chain_init(&chain->chain, loop, &chain_type, chain) < 0) {
                free_texts(chain);
                free(chain);
                return -ENOMEM;
        }
        return credentials_new(loop, &operations, chain, ret_credentials);
}
