/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A store of objects behind HTTP: what S3, GCS and Azure have in common. Listings are flat, sorted,
 * and come in pages; objects are read by ranges; requests are authorised by credentials that may
 * have to be waited for. A dialect says the rest: how a request looks, how a page is parsed, and
 * what an error means. Loop thread.
 */
#pragma once

#include "daemon/core/list.h"
#include "daemon/store/credentials.h"
#include "daemon/store/http_client.h"
#include "daemon/store/store.h"

struct object_store;

/* ---- What a dialect makes ---- */

/* One request in the making; the strings are its own. */
struct object_request {
        char *target;   /* encoded path and query */
        char **headers; /* NULL-terminated "Name: value"; NULL: none yet */
        size_t header_count;
        uint64_t begin, size_bytes; /* the range; size 0: all */
};

/* -ENOMEM. */
int object_request_add_header(struct object_request *request, const char *format, ...)
        __attribute__((format(printf, 2, 3)));

/* What is listed, in whole keys: of the bucket, not relative to the source. */
struct object_list_place {
        const char *prefix; /* only keys that begin with it */
        size_t prefix_size;
        bool one_level;    /* keys with another slash behind the prefix are named by that alone */
        const char *after; /* keys behind it; NULL: all */
        const char *until; /* and up to it */
        const char *token; /* where the page before went on; NULL: the first page */
};

struct object_row {
        const char *key; /* whole; bytes, decoded once; borrowed */
        size_t key_size;
        uint64_t size_bytes;
        int64_t mtime_ns;  /* INT64_MIN: not said */
        const char *tag;   /* of the version, without W/; "": none */
        bool is_archived;  /* cannot be read before it is brought back */
        bool is_directory; /* a marker, whatever its name and size */
};

struct object_page_events {
        void (*on_object)(void *userdata, const struct object_row *row);
        /* of one_level: a prefix with its slash */
        void (*on_prefix)(void *userdata, const char *prefix, size_t size);
};

/* Headers of an answer that a dialect looks at, beside those of struct http_answer. */
struct object_reply {
        const struct http_answer *answer;
        const char *body; /* of an error, cut after 16 KiB; NUL-terminated, "" if there is none */
        size_t body_size;
        char region[64];  /* "": not said */
        char version[64]; /* of the object: a generation; "": not said */
        char date[40];    /* of the server; "": not said */
        char request[80]; /* the server's number of the request, for its operators; "": not said */
};

enum object_operation { OBJECT_LIST, OBJECT_READ };

enum object_remedy {
        OBJECT_FAILS,     /* the failure stands */
        OBJECT_REFRESHES, /* the credentials were refused: once more with others */
        /* the dialect has learned something (region, clock, endpoint): once more */
        OBJECT_LEARNED,
};

struct object_dialect {
        const char *name;

        /* A page, parsed as a stream: as many objects and prefixes as it has. */
        int (*page_new)(const struct object_page_events *events, void *userdata, void **ret_page);
        /* 0; -EBADMSG: that is no page; -ENOMEM. Then nothing follows but page_free(). */
        int (*page_feed)(void *page, const uint8_t *bytes, size_t size);
        /*
         * The page has ended. *ret_token (the caller's to free) is where the next one goes on;
         * NULL: this was the last. -EBADMSG: it is not complete.
         */
        int (*page_end)(void *page, char **ret_token);
        void (*page_free)(void *page);

        /* target, and headers other than of authorisation and range. -ENOMEM. */
        int (*list_request)(struct object_store *store, const struct object_list_place *place,
                            struct object_request *request);
        int (*read_request)(struct object_store *store, const char *key, size_t key_size,
                            const struct store_read_range *range, struct object_request *request);
        /*
         * Authorises a request, right before it is sent; the range's header is libcurl's and not
         * to be signed. -errno.
         */
        int (*sign)(struct object_store *store, enum object_operation operation,
                    struct object_request *request, const struct credentials_value *value);
        /* Keeps what it wants to know of a header. NULL: nothing. */
        void (*on_header)(struct object_store *store, struct object_reply *reply, const char *name,
                          size_t name_size, const char *value, size_t value_size);
        /*
         * Of an answer that is no success (not 2xx): fills the failure. thing: what was asked for,
         * for people. 416 and 412 do not come here.
         */
        enum object_remedy (*judge)(struct object_store *store, enum object_operation operation,
                                    const struct object_reply *reply, const char *thing,
                                    const struct credentials_value *value,
                                    struct store_failure *ret_failure);
        /*
         * Of a success of a read: false if it is of another version than the range's tag wants,
         * which the server should have refused. NULL: it is not looked at.
         */
        bool (*is_version)(struct object_store *store, const struct object_reply *reply,
                           const char *tag);
        /* Frees what the dialect added to the struct, but not the struct. NULL: nothing. */
        void (*deinit)(struct object_store *store);
};

/* First member of a dialect's own struct. */
struct object_store {
        struct store store;
        const struct object_dialect *dialect;
        uv_loop_t *loop;
        char *prefix; /* of all keys: "" or with a slash at its end */
        size_t prefix_size;
        struct credentials *credentials;
        struct http_client_options client_options; /* of clients that are made from now on */
        struct list clients;                       /* of endpoints; the first one is asked */
        struct list calls;                         /* under way */
        unsigned open_parts;                       /* that close() waits for */
        void (*on_closed)(void *userdata);
        void *userdata;
};

/* Where a source is. Borrowed for the call. */
struct object_store_place {
        const char *url;      /* of the source, in any spelling */
        const char *endpoint; /* "https://host[:port]"; NULL: there was no memory for it */
        const char *prefix;   /* decoded and without slashes around it; "": the bucket */
        /* An endpoint of one's own, where requests cost nothing and fewer of them are welcome. */
        bool is_custom;
        const struct store_price *price; /* of the cloud's own endpoint */
        bool has_shared_tags;            /* as of struct store */
};

/*
 * Makes the store out of the struct that the dialect has allocated with calloc() and filled with
 * what is its own. Takes store, credentials and what they hold, on failure too: then, and when the
 * store has closed, dialect.deinit() is called and the struct freed. client_options: NULL for the
 * defaults. -EINVAL (*ret_message says why), -ENOMEM.
 */
int object_store_open(struct object_store *take_store, uv_loop_t *loop,
                      const struct object_dialect *dialect, const struct object_store_place *place,
                      const struct http_client_options *client_options,
                      struct credentials *take_credentials, const char **ret_message);

/* From now on requests go there; those under way end where they are. -EINVAL, -ENOMEM. */
int object_store_set_endpoint(struct object_store *store, const char *endpoint);

/* The endpoint that requests go to now; borrowed. */
const struct http_url *object_store_endpoint(const struct object_store *store);
