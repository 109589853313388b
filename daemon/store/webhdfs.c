/* SPDX-License-Identifier: Apache-2.0 */
/*
 * webhdfs://host[:port]/path and, over TLS, swebhdfs://: directories by LISTSTATUS_BATCH, files by
 * OPEN with offset and length, which the NameNode answers with a redirect to a DataNode. HDFS has no
 * tags: a version is a length and a time. Who asks is whoever the delegation token in
 * HEADRACE_WEBHDFS_DELEGATION is of; else HADOOP_USER_NAME or the user of this process, unless the
 * server asks for SPNEGO: then the Kerberos ticket says it. Source: "WebHDFS REST API".
 */
#include <errno.h>
#include <pwd.h>
#include <string.h>
#include <strings.h>

#include "common/base.h"
#include "common/source_url.h"
#include "daemon/store/hdfs_error.h"
#include "daemon/store/http_files.h"
#include "daemon/store/percent.h"
#include "daemon/store/types.h"

#define WEBHDFS_WINDOW_START 128
#define WEBHDFS_PORT "9870"
#define WEBHDFS_TLS_PORT "9871"

struct webhdfs {
        struct http_files files;
        char *path;  /* "/webhdfs/v1/..." without a slash at its end */
        char *who;   /* "user.name=..." or "delegation=...": of each query */
        char *query; /* of listings */
        char *claim; /* "&user.name=..."; NULL: there is a token */
};

static char *make_target(const struct http_files *files, const struct store_read_range *range) {
        const struct webhdfs *hdfs = (const struct webhdfs *)files;
        char *target = NULL;
        size_t size;
        FILE *out = open_memstream(&target, &size);

        if (!out)
                return NULL;
        fprintf(out, "%s/", hdfs->path);
        percent_write_path(out, range->name, range->name_size);
        fprintf(out, "?op=OPEN&offset=%llu&length=%llu&%s", (unsigned long long)range->offset,
                (unsigned long long)range->size_bytes, hdfs->who);
        if (fclose(out) != 0) {
                free(target);
                return NULL;
        }
        return target;
}

static void wipe(char *text) {
        if (text)
                explicit_bzero(text, strlen(text));
        free(text);
}

static void webhdfs_free(struct http_files *files) {
        struct webhdfs *hdfs = (struct webhdfs *)files;

        http_files_deinit(files);
        wipe(hdfs->who);
        wipe(hdfs->query);
        free(hdfs->path);
        free(hdfs->claim);
        free(hdfs);
}

/* What a DataNode says of its answer is of no version. */
static const struct http_files_kind kind = { .make_target = make_target,
                                             .range_is_in_target = true,
                                             .judge = hdfs_error_judge,
                                             .free = webhdfs_free };

/* "http://host:port/webhdfs/v1/path" of "webhdfs://host[:port]/path". */
static char *make_url(const char *url) {
        bool is_tls = strncasecmp(url, "s", 1) == 0;
        const char *host = strstr(url, "://") + strlen("://");
        size_t size = strcspn(host, "/?#");
        const char *end = memchr(host, ']', size), *from = end ? end : host;
        bool has_port = memchr(from, ':', size - (size_t)(from - host));
        char *made = NULL;
        size_t made_size;
        FILE *out = open_memstream(&made, &made_size);

        if (!out)
                return NULL;
        fprintf(out, "http%s://%.*s%s%s/webhdfs/v1", is_tls ? "s" : "", (int)size, host,
                has_port ? "" : ":",
                has_port ? ""
                : is_tls ? WEBHDFS_TLS_PORT
                         : WEBHDFS_PORT);
        percent_write_path(out, host + size, strcspn(host + size, "?#"));
        if (fclose(out) != 0) {
                free(made);
                return NULL;
        }
        return made;
}

static const char *user_name(void) {
        const char *name = getenv("HADOOP_USER_NAME");
        const struct passwd *entry = name && *name ? NULL : getpwuid(geteuid());

        return name && *name ? name : entry ? entry->pw_name : "nobody";
}

static int set_who(struct webhdfs *hdfs) {
        const char *token = getenv("HEADRACE_WEBHDFS_DELEGATION");
        bool has_token = token && *token;
        const char *value = has_token ? token : user_name();
        size_t size;
        FILE *out = open_memstream(&hdfs->who, &size);

        if (!out)
                return -ENOMEM;
        fputs(has_token ? "delegation=" : "user.name=", out);
        percent_write(out, value, strlen(value));
        if (fclose(out) != 0 || asprintf(&hdfs->query, "?op=LISTSTATUS_BATCH&%s", hdfs->who) < 0)
                return -ENOMEM;
        if (!has_token && asprintf(&hdfs->claim, "&%s", hdfs->who) < 0) {
                hdfs->claim = NULL;
                return -ENOMEM;
        }
        return asprintf(&hdfs->files.store.identity, has_token ? "a delegation token%s" : "user %s",
                        has_token ? "" : value) < 0
                       ? -ENOMEM
                       : 0;
}

/* The server took a ticket. */
static void on_login(void *userdata) {
        struct webhdfs *hdfs = userdata;
        char *identity = strdup("a Kerberos ticket");

        if (!identity)
                return;
        free(hdfs->files.store.identity);
        hdfs->files.store.identity = identity;
}

static int set_places(struct webhdfs *hdfs) {
        struct http_files *files = &hdfs->files;
        int r = set_who(hdfs);

        if (r < 0)
                return r;
        hdfs->path = strdup(files->url.path);
        files->shown = strdup(files->store.url);
        files->store.endpoint = strdup(files->url.endpoint);
        if (!hdfs->path || !files->shown || !files->store.endpoint)
                return -ENOMEM;
        files->place = (struct http_listing_place){
                .path = hdfs->path,
                .query = hdfs->query,
                .shown = files->store.url,
                .index = &files->index,
        };
        return 0;
}

static int webhdfs_new(uv_loop_t *loop, const char *url, struct store **ret_store,
                       const char **ret_message) {
        struct http_client_options options = http_client_defaults;
        CLEANUP(freep) char *made = make_url(url);
        struct webhdfs *hdfs = made ? calloc(1, sizeof(*hdfs)) : NULL;
        struct http_files *files = &hdfs->files;
        int r;

        if (!hdfs)
                return -ENOMEM;
        options.no_credentials = true;
        options.on_login = on_login;
        options.login_userdata = hdfs;
        files->store.operations = &http_files_operations;
        files->store.window_start = WEBHDFS_WINDOW_START;
        files->kind = &kind;
        files->loop = loop;
        files->index = &http_index_hdfs;
        r = http_url_init(&files->url, made, ret_message);
        if (r == 0 && (r = source_url_normalize(url, &files->store.url)) == -EINVAL)
                *ret_message = "the URL names no host";
        if (r == 0)
                r = set_places(hdfs);
        options.claim = hdfs->claim;
        options.negotiates = hdfs->claim != NULL;
        if (r == 0)
                r = http_client_new(loop, &files->url, &options, &files->client);
        if (r < 0) {
                webhdfs_free(files);
                return r;
        }
        *ret_store = &files->store;
        return 0;
}

static const char *const schemes[] = { "webhdfs", "swebhdfs", NULL };

const struct store_type store_type_webhdfs = { .name = "webhdfs",
                                               .schemes = schemes,
                                               .new = webhdfs_new };
