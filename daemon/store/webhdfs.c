/* SPDX-License-Identifier: Apache-2.0 */
/*
 * webhdfs://host[:port]/path and, over TLS, swebhdfs://: directories by LISTSTATUS_BATCH, files by
 * OPEN with offset and length, which the NameNode answers with a redirect to a DataNode. HDFS has no
 * tags: a version is a length and a time. Who asks is HADOOP_USER_NAME or the user of this process,
 * or whoever the delegation token in HEADRACE_WEBHDFS_DELEGATION is of. Source: "WebHDFS REST API".
 */
#include <errno.h>
#include <pwd.h>
#include <string.h>
#include <strings.h>

#include "common/base.h"
#include "common/source_url.h"
#include "daemon/store/failure.h"
#include "daemon/store/hdfs_error.h"
#include "daemon/store/http_listing.h"
#include "daemon/store/http_read.h"
#include "daemon/store/percent.h"
#include "daemon/store/types.h"

#define WEBHDFS_WINDOW_START 128
#define WEBHDFS_PORT "9870"
#define WEBHDFS_TLS_PORT "9871"

struct webhdfs {
        struct store store;
        uv_loop_t *loop;
        struct http_url url;
        struct http_client *client;
        struct http_listing_place place;
        const struct http_index *index;
        char *path;  /* "/webhdfs/v1/..." without a slash at its end */
        char *who;   /* "user.name=..." or "delegation=...": of each query */
        char *query; /* of listings */
        struct store_list *list;
        void (*on_closed)(void *userdata);
        void *userdata;
};

struct store_list {
        struct webhdfs *hdfs;
        struct http_listing *listing;
        struct store_list_callbacks callbacks;
        void *userdata;
};

struct store_read {
        struct webhdfs *hdfs;
        struct http_request *request;
        struct http_read body;
        char *thing; /* for people */
        void (*on_done)(void *userdata, const struct store_read_result *result);
        void *userdata;
};

/* ---- Reading ---- */

static void read_free(struct store_read *read) {
        http_read_deinit(&read->body);
        free(read->thing);
        free(read);
}

static bool on_body(void *userdata, const struct http_answer *answer, const uint8_t *bytes,
                    size_t size) {
        struct store_read *read = userdata;

        return http_read_take(&read->body, answer, bytes, size);
}

static void on_answer(void *userdata, const struct http_answer *answer,
                      const struct store_failure *transport) {
        struct store_read *read = userdata;
        struct store_read_result result;

        if (http_read_end(&read->body, answer, transport, read->thing, &result))
                hdfs_error_judge(answer->status, read->body.error ? read->body.error : "",
                                 read->body.error_size, read->thing, &result.failure);
        result.tag[0] = '\0'; /* what a DataNode says of its answer is of no version */
        read->on_done(read->userdata, &result);
        read_free(read);
}

/* The caller's to free; NULL: no memory. */
static char *make_target(const struct webhdfs *hdfs, const struct store_read_range *range) {
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

static int webhdfs_read(struct store *store, const struct store_read_range *range,
                        void (*on_done)(void *userdata, const struct store_read_result *result),
                        void *userdata, struct store_read **ret_read) {
        static const struct http_handler handler = { .on_body = on_body, .on_done = on_answer };
        struct webhdfs *hdfs = (struct webhdfs *)store;
        CLEANUP(freep) char *target = make_target(hdfs, range);
        struct http_query query = { .target = target };
        struct store_read *read;
        int r;

        if (range->size_bytes == 0 || range->offset > UINT64_MAX - range->size_bytes)
                return -EINVAL;
        read = target ? calloc(1, sizeof(*read)) : NULL;
        if (!read)
                return -ENOMEM;
        read->hdfs = hdfs;
        read->on_done = on_done;
        read->userdata = userdata;
        http_read_init(&read->body, range, true);
        read->body.body_is_range = true;
        r = asprintf(&read->thing, "%s/%.*s", hdfs->store.url, (int)range->name_size, range->name) <
                            0
                    ? -ENOMEM
                    : 0;
        if (r < 0)
                read->thing = NULL;
        else
                r = http_client_send(hdfs->client, &query, &handler, read, &read->request);
        if (r < 0) {
                read_free(read);
                return r;
        }
        *ret_read = read;
        return 0;
}

static bool webhdfs_read_has_begun(const struct store_read *read) {
        return http_request_has_begun(read->request);
}

static bool webhdfs_read_cancel(struct store_read *read, void (*on_released)(void *userdata),
                                void *userdata) {
        (void)on_released;
        (void)userdata;
        http_request_cancel(read->request);
        read_free(read);
        return true;
}

/* ---- Listing ---- */

static void on_row(void *userdata, const struct store_row *row) {
        struct store_list *list = userdata;

        list->callbacks.on_row(list->userdata, row);
}

static void on_unreadable(void *userdata, const char *directory, size_t size,
                          const struct store_failure *failure) {
        struct store_list *list = userdata;

        list->callbacks.on_unreadable(list->userdata, directory, size, failure);
}

static void on_listed(void *userdata, const struct store_failure *failure,
                      const struct store_list_counts *counts) {
        struct store_list *list = userdata;
        struct store_list ended = *list;

        list->hdfs->list = NULL;
        free(list);
        ended.callbacks.on_done(ended.userdata, failure, counts);
}

static int webhdfs_list(struct store *store, const struct store_list_range *range,
                        const struct store_list_callbacks *callbacks, void *userdata,
                        struct store_list **ret_list) {
        static const struct store_list_callbacks own = { .on_row = on_row,
                                                         .on_unreadable = on_unreadable,
                                                         .on_done = on_listed };
        struct webhdfs *hdfs = (struct webhdfs *)store;
        struct store_list *list;
        int r;

        if (range)
                return -ENOTSUP;
        MUST(!hdfs->list);
        list = calloc(1, sizeof(*list));
        if (!list)
                return -ENOMEM;
        list->hdfs = hdfs;
        list->callbacks = *callbacks;
        list->userdata = userdata;
        r = http_listing_start(hdfs->loop, hdfs->client, &hdfs->place, &own, list, &list->listing);
        if (r < 0) {
                free(list);
                return r;
        }
        hdfs->list = list;
        *ret_list = list;
        return 0;
}

static void webhdfs_list_cancel(struct store_list *list) {
        list->hdfs->list = NULL;
        http_listing_cancel(list->listing);
        free(list);
}

/* ---- Life ---- */

static void wipe(char *text) {
        if (text)
                explicit_bzero(text, strlen(text));
        free(text);
}

static void webhdfs_free(struct webhdfs *hdfs) {
        http_url_deinit(&hdfs->url);
        wipe(hdfs->who);
        wipe(hdfs->query);
        free(hdfs->path);
        free(hdfs->store.url);
        free(hdfs->store.endpoint);
        free(hdfs->store.identity);
        free(hdfs);
}

static void on_client_closed(void *userdata) {
        struct webhdfs *hdfs = userdata;
        void (*on_closed)(void *) = hdfs->on_closed;
        void *on_closed_userdata = hdfs->userdata;

        webhdfs_free(hdfs);
        if (on_closed)
                on_closed(on_closed_userdata);
}

static void webhdfs_close(struct store *store, void (*on_closed)(void *userdata), void *userdata) {
        struct webhdfs *hdfs = (struct webhdfs *)store;

        hdfs->on_closed = on_closed;
        hdfs->userdata = userdata;
        if (hdfs->list)
                webhdfs_list_cancel(hdfs->list);
        http_client_close(hdfs->client, on_client_closed, hdfs);
}

static const struct store_operations operations = {
        .list = webhdfs_list,
        .list_cancel = webhdfs_list_cancel,
        .read = webhdfs_read,
        .read_has_begun = webhdfs_read_has_begun,
        .read_cancel = webhdfs_read_cancel,
        .close = webhdfs_close,
};

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
        return asprintf(&hdfs->store.identity, has_token ? "a delegation token%s" : "user %s",
                        has_token ? "" : value) < 0
                       ? -ENOMEM
                       : 0;
}

static int set_places(struct webhdfs *hdfs) {
        int r = set_who(hdfs);

        if (r < 0)
                return r;
        hdfs->path = strdup(hdfs->url.path);
        hdfs->store.endpoint = strdup(hdfs->url.endpoint);
        if (!hdfs->path || !hdfs->store.endpoint)
                return -ENOMEM;
        hdfs->place = (struct http_listing_place){
                .path = hdfs->path,
                .query = hdfs->query,
                .shown = hdfs->store.url,
                .index = &hdfs->index,
        };
        return 0;
}

static int webhdfs_new(uv_loop_t *loop, const char *url, struct store **ret_store,
                       const char **ret_message) {
        struct http_client_options options = http_client_defaults;
        CLEANUP(freep) char *made = make_url(url);
        struct webhdfs *hdfs = made ? calloc(1, sizeof(*hdfs)) : NULL;
        int r;

        if (!hdfs)
                return -ENOMEM;
        options.no_credentials = true;
        hdfs->store.operations = &operations;
        hdfs->store.window_start = WEBHDFS_WINDOW_START;
        hdfs->loop = loop;
        hdfs->index = &http_index_hdfs;
        r = http_url_init(&hdfs->url, made, ret_message);
        if (r == 0 && (r = source_url_normalize(url, &hdfs->store.url)) == -EINVAL)
                *ret_message = "the URL names no host";
        if (r == 0)
                r = set_places(hdfs);
        if (r == 0)
                r = http_client_new(loop, &hdfs->url, &options, &hdfs->client);
        if (r < 0) {
                webhdfs_free(hdfs);
                return r;
        }
        *ret_store = &hdfs->store;
        return 0;
}

static const char *const schemes[] = { "webhdfs", "swebhdfs", NULL };

const struct store_type store_type_webhdfs = { .name = "webhdfs",
                                               .schemes = schemes,
                                               .new = webhdfs_new };
