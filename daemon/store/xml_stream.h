/* SPDX-License-Identifier: Apache-2.0 */
/*
 * XML that servers send, read as a stream by expat: each element's name (without a namespace's
 * prefix) and the text that it holds. What lists and error messages do not need is refused: document
 * types, deep nesting, long texts and tags. So memory is bounded, and work for each byte, whatever
 * comes.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#define XML_STREAM_DEPTH_MOST 16
#define XML_STREAM_TEXT_MOST_BYTES (64u << 10)
#define XML_STREAM_TOKEN_MOST_BYTES (64u << 10) /* a tag with its attributes, a comment ... */

struct xml_stream;

struct xml_stream_events {
        /* depth: 1 for the document's element. NULL: nobody cares. */
        void (*on_open)(void *userdata, const char *name, unsigned depth);
        /* text: NUL-terminated, what stood in the element itself; "" if it had elements behind it */
        void (*on_close)(void *userdata, const char *name, unsigned depth, const char *text,
                         size_t size);
        /* an attribute of the element that opens; NULL: nobody cares */
        void (*on_attribute)(void *userdata, const char *element, const char *name,
                             const char *value);
};

/* -ENOMEM. */
int xml_stream_new(const struct xml_stream_events *events, void *userdata,
                   struct xml_stream **ret_stream);
struct xml_stream *xml_stream_free(struct xml_stream *stream);

/*
 * Takes the next bytes. 0; -EBADMSG: it is no XML, or more than is taken; -ENOMEM. After a failure
 * the stream is good for xml_stream_free() only.
 */
int xml_stream_feed(struct xml_stream *stream, const void *bytes, size_t size);

/* The document has ended: -EBADMSG if it is not whole. */
int xml_stream_end(struct xml_stream *stream);
