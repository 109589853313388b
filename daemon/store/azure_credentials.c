/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The ways are tried in order; the first one that is set up counts. One that asks a server or a
 * program is under way until its answer comes; the metadata service and the CLI may turn out not to
 * be there, and the next way is tried.
 */
#include "daemon/store/azure_credentials.h"

#include <errno.h>
#include <jansson.h>
#include <string.h>
#include <strings.h>
#include <time.h>

#include "common/base.h"
#include "daemon/store/aws_source.h"
#include "daemon/store/command.h"
#include "daemon/store/failure.h"
#include "daemon/store/http_exchange.h"
#include "daemon/store/iso_time.h"
#include "daemon/store/percent.h"

#define AUTHORITY "https://login.microsoftonline.com"
#define RESOURCE "https://storage.azure.com/"
#define SCOPE "https://storage.azure.com/.default"
#define METADATA "http://169.254.169.254"
#define METADATA_TIMEOUT_MS 1000
#define CLI_TIMEOUT_MS 30000
#define WHY_BYTES 200

struct azure_chain {
        uv_loop_t *loop;
        char *account, *key, *sas;
        size_t at; /* way that is tried */
        struct http_exchange *exchange;
        struct command *command;
        char *identity; /* of what is under way */
        uv_timer_t *turn;
        char tried[400];
        credentials_on_value *on_value;
        void *userdata;
};

enum outcome { READY, RUNNING, ABSENT };

static void try_next(struct azure_chain *chain);

static const char *variable(const char *name) {
        return aws_variable(name);
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

static void note(struct azure_chain *chain, const char *way, const char *why) {
        size_t size = strlen(chain->tried);

        snprintf(chain->tried + size, sizeof(chain->tried) - size, "%s%s: %s", size ? "; " : "",
                 way, why);
}

static void on_token(void *userdata, const struct http_exchange_answer *answer) {
        struct azure_chain *chain = userdata;
        struct store_failure failure = answer->failure;
        struct credentials_value value;
        json_t *root;
        const char *words;
        int r = -EBADMSG;

        chain->exchange = NULL;
        if (failure.class == STORE_OK && answer->status == 200)
                r = value_of_json(chain, answer->body, answer->body_size, &value);
        if (r == 0) {
                chain->on_value(chain->userdata, &value, NULL);
                return;
        }
        if (failure.class == STORE_OK) {
                root = json_loadb(answer->body, answer->body_size, 0, NULL);
                words = json_string_value(json_object_get(root, "error_description"));
                failure_set(&failure, answer->status >= 500 ? STORE_TRANSIENT : STORE_PERMANENT,
                            "token", "%ld from the token endpoint, as %s", answer->status,
                            chain->identity);
                if (words)
                        failure_advise(&failure, "%.*s", (int)strcspn(words, "\r\n"), words);
                json_decref(root);
        }
        chain->on_value(chain->userdata, NULL, &failure);
}

static void on_metadata(void *userdata, const struct http_exchange_answer *answer) {
        struct azure_chain *chain = userdata;

        if (answer->failure.class == STORE_OK && answer->status != 404) {
                on_token(userdata, answer);
                return;
        }
        chain->exchange = NULL;
        note(chain, "managed identity", "no metadata service");
        chain->at++;
        try_next(chain);
}

static void on_cli(void *userdata, const struct command_result *result) {
        struct azure_chain *chain = userdata;
        struct credentials_value value;

        chain->command = NULL;
        if (!result->error && !result->timed_out && result->exit_code == 0 &&
            value_of_json(chain, result->output, result->output_size, &value) == 0) {
                chain->on_value(chain->userdata, &value, NULL);
                return;
        }
        note(chain, "Azure CLI",
             result->error      ? strerror(-result->error)
             : result->words[0] ? result->words
                                : "az login");
        chain->at++;
        try_next(chain);
}

/* ---- Ways ---- */

static int by_sas(struct azure_chain *chain, struct credentials_value *ret_value, char *why) {
        CLEANUP(freep) char *token = NULL;
        int r;

        if (!chain->sas) {
                snprintf(why, WHY_BYTES, "AZURE_STORAGE_SAS_TOKEN is not set");
                return ABSENT;
        }
        if (asprintf(&token, "?%s", chain->sas) < 0) {
                token = NULL;
                return -ENOMEM;
        }
        r = set_value(ret_value, chain, NULL, token, CREDENTIALS_NEVER, "a SAS");
        explicit_bzero(token, strlen(token));
        return r < 0 ? r : READY;
}

static int by_key(struct azure_chain *chain, struct credentials_value *ret_value, char *why) {
        char identity[160];
        int r;

        if (!chain->key) {
                snprintf(why, WHY_BYTES, "AZURE_STORAGE_KEY is not set");
                return ABSENT;
        }
        snprintf(identity, sizeof(identity), "the key of account %s", chain->account);
        r = set_value(ret_value, chain, chain->key, NULL, CREDENTIALS_NEVER, identity);
        return r < 0 ? r : READY;
}

static void write_field(FILE *out, const char *name, const char *value) {
        fprintf(out, "&%s=", name);
        percent_write(out, value, strlen(value));
}

/* secret or assertion; both may be wiped afterwards. */
static int ask_authority(struct azure_chain *chain, const char *tenant, const char *client,
                         const char *secret, const char *assertion) {
        static const char *const headers[] = { "Content-Type: application/x-www-form-urlencoded",
                                               NULL };
        const char *authority = variable("AZURE_AUTHORITY_HOST");
        CLEANUP(freep) char *url = NULL, *body = NULL;
        size_t size;
        FILE *out = open_memstream(&body, &size);
        int r;

        if (!out)
                return -ENOMEM;
        authority = authority ? authority : AUTHORITY;
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
        if (fclose(out) != 0 ||
            asprintf(&url, "%s%s%s/oauth2/v2.0/token", authority,
                     authority[strlen(authority) - 1] == '/' ? "" : "/", tenant) < 0)
                return -ENOMEM;
        r = http_exchange_start(chain->loop,
                                &(struct http_exchange_query){ .url = url,
                                                               .method = "POST",
                                                               .headers = headers,
                                                               .body = body,
                                                               .body_size = size },
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
                snprintf(why, WHY_BYTES, "%s is not set",
                         !tenant   ? "AZURE_TENANT_ID"
                         : !client ? "AZURE_CLIENT_ID"
                                   : "AZURE_CLIENT_SECRET");
                return ABSENT;
        }
        r = set_identity(chain, "application %s", client);
        if (r == 0)
                r = ask_authority(chain, tenant, client, secret, NULL);
        return r < 0 ? r : RUNNING;
}

static int by_workload(struct azure_chain *chain, struct credentials_value *ret_value, char *why) {
        const char *path = variable("AZURE_FEDERATED_TOKEN_FILE");
        const char *tenant = variable("AZURE_TENANT_ID"), *client = variable("AZURE_CLIENT_ID");
        CLEANUP(freep) char *token = NULL;
        int r;

        (void)ret_value;
        if (!path || !tenant || !client) {
                snprintf(why, WHY_BYTES, "AZURE_FEDERATED_TOKEN_FILE is not set");
                return ABSENT;
        }
        r = aws_read_file(path, &token);
        if (r < 0 && r != -ENOMEM) {
                snprintf(why, WHY_BYTES, "%s: %s", path, strerror(-r));
                return ABSENT;
        }
        if (r < 0)
                return r;
        token[strcspn(token, "\r\n")] = '\0';
        r = set_identity(chain, "workload identity %s", client);
        if (r == 0)
                r = ask_authority(chain, tenant, client, NULL, token);
        explicit_bzero(token, strlen(token));
        return r < 0 ? r : RUNNING;
}

/* App Service and Functions have an endpoint of their own, virtual machines one for all. */
static int by_managed_identity(struct azure_chain *chain, struct credentials_value *ret_value,
                               char *why) {
        const char *service = variable("IDENTITY_ENDPOINT"), *secret = variable("IDENTITY_HEADER");
        const char *client = variable("AZURE_CLIENT_ID");
        const char *host = variable("AZURE_POD_IDENTITY_AUTHORITY_HOST");
        CLEANUP(freep) char *url = NULL, *header = NULL;
        const char *headers[2] = { "Metadata: true", NULL };
        bool is_service = service && secret;
        int r;

        (void)ret_value;
        (void)why;
        if (asprintf(&url, "%s%s?api-version=%s&resource=" RESOURCE "%s%s",
                     is_service ? service
                     : host     ? host
                                : METADATA,
                     is_service ? "" : "/metadata/identity/oauth2/token",
                     is_service ? "2019-08-01" : "2018-02-01", client ? "&client_id=" : "",
                     client ? client : "") < 0) {
                url = NULL;
                return -ENOMEM;
        }
        if (is_service) {
                if (asprintf(&header, "X-IDENTITY-HEADER: %s", secret) < 0) {
                        header = NULL;
                        return -ENOMEM;
                }
                headers[0] = header;
        }
        r = set_identity(chain, "managed identity%s", "");
        if (r == 0)
                r = http_exchange_start(chain->loop,
                                        &(struct http_exchange_query){
                                                .url = url,
                                                .headers = headers,
                                                .timeout_ms = METADATA_TIMEOUT_MS,
                                                .tries = 2,
                                                .no_proxy = true,
                                        },
                                        on_metadata, chain, &chain->exchange);
        return r < 0 ? r : RUNNING;
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
        return r < 0 ? r : RUNNING;
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

static void give_up(struct azure_chain *chain) {
        struct store_failure failure;

        failure_set(&failure, STORE_PERMANENT, "no-credentials",
                    "No credentials of Azure were found for account %s", chain->account);
        failure_advise(&failure, "%s", chain->tried);
        chain->on_value(chain->userdata, NULL, &failure);
}

static void on_turn(uv_timer_t *turn) {
        struct azure_chain *chain = turn->data;
        struct credentials_value value;
        struct store_failure failure;
        char why[WHY_BYTES] = "";
        int r;

        if (chain->at == ARRAY_SIZE(ways)) {
                give_up(chain);
                return;
        }
        r = ways[chain->at].start(chain, &value, why);
        if (r < 0) {
                failure_set_errno(&failure, -r, "credentials of Azure");
                chain->on_value(chain->userdata, NULL, &failure);
        } else if (r == READY) {
                chain->on_value(chain->userdata, &value, NULL);
        } else if (r == ABSENT) {
                note(chain, ways[chain->at].name, why);
                chain->at++;
                try_next(chain);
        }
}

static void try_next(struct azure_chain *chain) {
        uv_timer_start(chain->turn, on_turn, 0, 0);
}

static int chain_refresh(void *provider, credentials_on_value *on_value, void *userdata) {
        struct azure_chain *chain = provider;

        chain->on_value = on_value;
        chain->userdata = userdata;
        chain->at = 0;
        chain->tried[0] = '\0';
        try_next(chain);
        return 0;
}

static void chain_cancel(void *provider) {
        struct azure_chain *chain = provider;

        uv_timer_stop(chain->turn);
        if (chain->exchange)
                http_exchange_cancel(steal_pointer(&chain->exchange));
        if (chain->command)
                command_cancel(steal_pointer(&chain->command));
}

static void free_handle(uv_handle_t *handle) {
        free(handle);
}

static void wipe(char *text) {
        if (text)
                explicit_bzero(text, strlen(text));
        free(text);
}

static void chain_free(void *provider) {
        struct azure_chain *chain = provider;

        free(chain->account);
        wipe(chain->key);
        wipe(chain->sas);
        free(chain->identity);
        if (chain->turn)
                uv_close((uv_handle_t *)chain->turn, free_handle);
        free(chain);
}

static const struct credentials_provider operations = {
        .name = "azure",
        .refresh = chain_refresh,
        .cancel = chain_cancel,
        .free = chain_free,
};

int azure_credentials_new(uv_loop_t *loop, const struct azure_settings *settings,
                          const struct azure_place *place, struct credentials **ret_credentials) {
        struct azure_chain *chain = calloc(1, sizeof(*chain));
        /* A key or a SAS of the environment is of its account, and of no other. */
        bool is_its = !settings->account || strcmp(settings->account, place->account) == 0;
        bool well;

        if (!chain)
                return -ENOMEM;
        chain->loop = loop;
        well = copy(&chain->account, place->account) &&
               copy(&chain->key, is_its ? settings->key : NULL) &&
               copy(&chain->sas, place->sas ? place->sas
                                 : is_its   ? settings->sas
                                            : NULL);
        chain->turn = well ? malloc(sizeof(*chain->turn)) : NULL;
        if (!chain->turn) {
                chain_free(chain);
                return -ENOMEM;
        }
        uv_timer_init(loop, chain->turn);
        chain->turn->data = chain;
        return credentials_new(loop, &operations, chain, ret_credentials);
}
