/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/store/xml_stream.h"

#include <errno.h>
#include <expat.h>
#include <stdlib.h>
#include <string.h>

#include "common/base.h"

struct xml_stream {
        XML_Parser parser;
        struct xml_stream_events events;
        void *userdata;
        unsigned depth;
        uint64_t fed_bytes;
        char *text; /* of the innermost element so far */
        size_t size, space;
        int error; /* ours, for which the parser was stopped */
};

static const char *local_name(const char *name) {
        const char *colon = strrchr(name, ':');

        return colon ? colon + 1 : name;
}

static void stop(struct xml_stream *stream, int error) {
        stream->error = error;
        XML_StopParser(stream->parser, XML_FALSE);
}

static void XMLCALL on_start(void *userdata, const XML_Char *name, const XML_Char **attributes) {
        struct xml_stream *stream = userdata;

        if (++stream->depth > XML_STREAM_DEPTH_MOST) {
                stop(stream, -EBADMSG);
                return;
        }
        stream->size = 0;
        stream->text[0] = '\0';
        if (stream->events.on_open)
                stream->events.on_open(stream->userdata, local_name(name), stream->depth);
        for (size_t i = 0; stream->events.on_attribute && attributes[i]; i += 2)
                stream->events.on_attribute(stream->userdata, local_name(name),
                                            local_name(attributes[i]), attributes[i + 1]);
}

static void XMLCALL on_end(void *userdata, const XML_Char *name) {
        struct xml_stream *stream = userdata;

        stream->events.on_close(stream->userdata, local_name(name), stream->depth, stream->text,
                                stream->size);
        stream->depth--;
        stream->size = 0;
        stream->text[0] = '\0';
}

static void XMLCALL on_text(void *userdata, const XML_Char *text, int size) {
        struct xml_stream *stream = userdata;
        size_t need = stream->size + (size_t)size + 1;

        if (need > XML_STREAM_TEXT_MOST_BYTES) {
                stop(stream, -EBADMSG);
                return;
        }
        if (need > stream->space) {
                size_t space = max_u64(need, 2 * stream->space);
                char *longer = realloc(stream->text, space);

                if (!longer) {
                        stop(stream, -ENOMEM);
                        return;
                }
                stream->text = longer;
                stream->space = space;
        }
        memcpy(stream->text + stream->size, text, (size_t)size);
        stream->size += (size_t)size;
        stream->text[stream->size] = '\0';
}

/* A document type could define entities that grow, or name other documents. */
static void XMLCALL on_doctype(void *userdata, const XML_Char *name, const XML_Char *system,
                               const XML_Char *public, int has_subset) {
        (void)name;
        (void)system;
        (void)public;
        (void)has_subset;
        stop(userdata, -EBADMSG);
}

int xml_stream_new(const struct xml_stream_events *events, void *userdata,
                   struct xml_stream **ret_stream) {
        /* ours, so that tests can make it fail */
        static const XML_Memory_Handling_Suite memory = { malloc, realloc, free };
        struct xml_stream *stream = calloc(1, sizeof(*stream));

        if (!stream)
                return -ENOMEM;
        stream->events = *events;
        stream->userdata = userdata;
        stream->space = 256;
        stream->text = calloc(1, stream->space);
        stream->parser = XML_ParserCreate_MM(NULL, &memory, NULL);
        if (!stream->text || !stream->parser) {
                xml_stream_free(stream);
                return -ENOMEM;
        }
        XML_SetUserData(stream->parser, stream);
        XML_SetElementHandler(stream->parser, on_start, on_end);
        XML_SetCharacterDataHandler(stream->parser, on_text);
        XML_SetStartDoctypeDeclHandler(stream->parser, on_doctype);
        *ret_stream = stream;
        return 0;
}

struct xml_stream *xml_stream_free(struct xml_stream *stream) {
        if (!stream)
                return NULL;
        if (stream->parser)
                XML_ParserFree(stream->parser);
        free(stream->text);
        free(stream);
        return NULL;
}

static int parse(struct xml_stream *stream, const char *bytes, size_t size, bool is_final) {
        if (XML_Parse(stream->parser, bytes, (int)size, is_final) == XML_STATUS_OK)
                return 0;
        if (stream->error)
                return stream->error;
        return XML_GetErrorCode(stream->parser) == XML_ERROR_NO_MEMORY ? -ENOMEM : -EBADMSG;
}

/*
 * Until a tag or a comment has ended, expat keeps it and looks at all of it again with each piece:
 * without a limit, time would grow with the square of its size.
 */
static bool is_token_too_long(const struct xml_stream *stream) {
        XML_Index at = XML_GetCurrentByteIndex(stream->parser);

        return at >= 0 && stream->fed_bytes - (uint64_t)at > XML_STREAM_TOKEN_MOST_BYTES;
}

int xml_stream_feed(struct xml_stream *stream, const void *bytes, size_t size) {
        const char *at = bytes;

        while (size > 0) {
                size_t piece = min_u64(size, XML_STREAM_TOKEN_MOST_BYTES / 4);
                int r = parse(stream, at, piece, false);

                if (r < 0)
                        return r;
                stream->fed_bytes += piece;
                if (is_token_too_long(stream))
                        return -EBADMSG;
                at += piece;
                size -= piece;
        }
        return 0;
}

int xml_stream_end(struct xml_stream *stream) {
        return parse(stream, "", 0, true);
}
