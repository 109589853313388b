/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/store/xml_stream.h"

#include <errno.h>
#include <stdarg.h>
#include <string.h>

#include "common/base.h"
#include "tests/unit/runner.h"

static char seen[4096];

static void note(const char *format, ...) __attribute__((format(printf, 1, 2)));
static void note(const char *format, ...) {
        size_t size = strlen(seen);
        va_list arguments;

        va_start(arguments, format);
        vsnprintf(seen + size, sizeof(seen) - size, format, arguments);
        va_end(arguments);
}

static void on_open(void *userdata, const char *name, unsigned depth) {
        (void)userdata;
        note("<%u%s>", depth, name);
}

static void on_close(void *userdata, const char *name, unsigned depth, const char *text,
                     size_t size) {
        (void)userdata;
        ck_assert_uint_eq(strlen(text), size);
        note("%.40s</%u%s>", text, depth, name);
}

static void on_attribute(void *userdata, const char *element, const char *name, const char *value) {
        (void)userdata;
        note("%s.%s=%s", element, name, value);
}

static int parse(const char *text, size_t size, size_t piece) {
        static const struct xml_stream_events events = { on_open, on_close, on_attribute };
        struct xml_stream *stream;
        int r = 0;

        seen[0] = '\0';
        ck_assert_int_eq(xml_stream_new(&events, NULL, &stream), 0);
        for (size_t at = 0; r == 0 && at < size; at += piece)
                r = xml_stream_feed(stream, text + at, min_u64(piece, size - at));
        if (r == 0)
                r = xml_stream_end(stream);
        xml_stream_free(stream);
        return r;
}

START_TEST(names_and_texts) {
        static const char text[] = "<?xml version='1.0'?>\n<D:a xmlns:D='DAV:' D:k='v'>x<b>1&amp;2 "
                                   "&#65;</b>y<!-- c --><c/></D:a>";

        for (size_t piece = 1; piece <= sizeof(text); piece++) {
                ck_assert_int_eq(parse(text, strlen(text), piece), 0);
                ck_assert_str_eq(seen, "<1a>a.D=DAV:a.k=v<2b>1&2 A</2b><2c></2c></1a>");
        }
}
END_TEST

START_TEST(what_is_no_document) {
        static const char *const texts[] = {
                "",
                " ",
                "<a>",
                "<a></b>",
                "<a></a><b></b>",
                "{}",
                "<a>&lol;</a>",
                "<a k=1/>",
                "<a>\x01</a>",
                "<a>\xff</a>",
        };

        for (size_t i = 0; i < ARRAY_SIZE(texts); i++)
                ck_assert_msg(parse(texts[i], strlen(texts[i]), 3) == -EBADMSG, "%s", texts[i]);
}
END_TEST

START_TEST(entities_and_other_documents_are_refused) {
        static const char bomb[] = "<!DOCTYPE a [<!ENTITY l 'lol'><!ENTITY m "
                                   "'&l;&l;&l;&l;&l;&l;&l;&l;'>]><a>&m;</a>";
        static const char other[] = "<!DOCTYPE a SYSTEM 'file:///etc/passwd'><a/>";

        ck_assert_int_eq(parse(bomb, strlen(bomb), 100), -EBADMSG);
        ck_assert_str_eq(seen, "");
        ck_assert_int_eq(parse(other, strlen(other), 100), -EBADMSG);
}
END_TEST

START_TEST(depth_is_bounded) {
        char text[8 * XML_STREAM_DEPTH_MOST + 16] = "";

        for (unsigned most = XML_STREAM_DEPTH_MOST; most <= XML_STREAM_DEPTH_MOST + 1; most++) {
                text[0] = '\0';
                for (unsigned i = 0; i < most; i++)
                        strcat(text, "<a>");
                for (unsigned i = 0; i < most; i++)
                        strcat(text, "</a>");
                ck_assert_int_eq(parse(text, strlen(text), 7),
                                 most > XML_STREAM_DEPTH_MOST ? -EBADMSG : 0);
        }
}
END_TEST

/* A document of size bytes: what stands before, a lot of 'x', what stands behind. */
static int parse_large(const char *before, size_t size, const char *behind) {
        CLEANUP(freep) char *text = malloc(size + 256);
        char *at = stpcpy(text, before);

        memset(at, 'x', size);
        strcpy(at + size, behind);
        return parse(text, strlen(text), 16384);
}

/* 64 MiB of one comment would take expat minutes. */
START_TEST(texts_and_tags_are_bounded) {
        static const struct {
                const char *before, *behind;
        } places[] = {
                { "<a>", "</a>" }, { "<a><!--", "--></a>" }, { "<a k='", "'/>" },
                { "<", "/>" },     { "<a><?", "?></a>" },    { "<a><![CDATA[", "]]></a>" },
        };

        for (size_t i = 0; i < ARRAY_SIZE(places); i++) {
                ck_assert_int_eq(parse_large(places[i].before, 20000, places[i].behind), 0);
                ck_assert_int_eq(parse_large(places[i].before, 64u << 20, places[i].behind),
                                 -EBADMSG);
        }
}
END_TEST

RUNNER_MAIN("store/xml_stream", names_and_texts, what_is_no_document,
            entities_and_other_documents_are_refused, depth_is_bounded, texts_and_tags_are_bounded)
