/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The glob becomes a row of tokens, and the path goes through all of them at once: after each byte
 * it is known which tokens may stand before the next one. So nothing is ever tried twice.
 */
#include "common/path_glob.h"

#include <errno.h>
#include <stdint.h>
#include <string.h>

#include "common/base.h"

enum token_kind {
        TOKEN_SET,  /* one byte of a set */
        TOKEN_STAR, /* any bytes but '/' */
        TOKEN_ANY,  /* any bytes */
        TOKEN_DIRS, /* whole components, each with its '/' */
};

struct token {
        enum token_kind kind;
        uint32_t set[8]; /* a bit for each byte */
};

struct path_glob {
        size_t count;
        struct token tokens[];
};

/* Which tokens may stand before the next byte; the one behind the last: all have matched. */
struct places {
        bool at[PATH_GLOB_BYTES_MOST + 1];
};

static void set_add(struct token *token, unsigned byte) {
        token->set[byte / 32] |= UINT32_C(1) << (byte % 32);
}

static bool set_has(const struct token *token, unsigned byte) {
        return token->set[byte / 32] >> (byte % 32) & 1;
}

static void set_invert(struct token *token) {
        for (size_t i = 0; i < ARRAY_SIZE(token->set); i++)
                token->set[i] = ~token->set[i];
}

static void set_remove_slash(struct token *token) {
        token->set['/' / 32] &= ~(UINT32_C(1) << ('/' % 32));
}

/* One byte of a set, which may have a '\' before it. NULL: the glob ends. */
static const char *read_byte(const char *at, const char *end, unsigned *ret_byte) {
        if (at < end && *at == '\\')
                at++;
        if (at >= end)
                return NULL;
        *ret_byte = (unsigned char)*at;
        return at + 1;
}

/* What follows a '['. Returns what is behind the ']'; NULL: there is none. */
static const char *read_set(const char *at, const char *end, struct token *token) {
        bool inverted = at < end && (*at == '!' || *at == '^');
        bool first = true;

        for (at += inverted; at < end && (first || *at != ']'); first = false) {
                unsigned from, to;

                if (!(at = read_byte(at, end, &from)))
                        return NULL;
                to = from;
                if (end - at >= 2 && at[0] == '-' && at[1] != ']' &&
                    !(at = read_byte(at + 1, end, &to)))
                        return NULL;
                for (unsigned byte = from; byte <= to; byte++)
                        set_add(token, byte);
        }
        if (at >= end)
                return NULL;
        if (inverted)
                set_invert(token);
        set_remove_slash(token);
        return at + 1;
}

/* What follows a '*'. before is the byte in front of it, '/' at the glob's begin. */
static const char *read_star(const char *at, const char *end, char before, struct token *token) {
        token->kind = TOKEN_STAR;
        if (at == end || *at != '*')
                return at;
        while (at < end && *at == '*')
                at++;
        token->kind = TOKEN_ANY;
        if (before == '/' && at < end && *at == '/') {
                token->kind = TOKEN_DIRS;
                at++;
        }
        return at;
}

/* One token. Returns what is behind it; NULL: the glob is wrong. */
static const char *read_token(const char *begin, const char *at, const char *end,
                              struct token *token) {
        unsigned byte = (unsigned char)*at;

        switch (*at) {
        case '*':
                return read_star(at + 1, end, at == begin ? '/' : at[-1], token);
        case '[':
                return read_set(at + 1, end, token);
        case '?':
                set_invert(token);
                set_remove_slash(token);
                return at + 1;
        default:
                at = read_byte(at, end, &byte);
                set_add(token, byte);
                return at;
        }
}

int path_glob_new(const char *text, struct path_glob **ret_glob) {
        const char *begin = text + strspn(text, "/"), *end = begin + strlen(begin), *at;
        CLEANUP(freep) struct path_glob *glob = NULL;

        while (end > begin && end[-1] == '/')
                end--;
        if (end == begin || end - begin > PATH_GLOB_BYTES_MOST)
                return -EINVAL;
        glob = calloc(1, sizeof(*glob) + (size_t)(end - begin) * sizeof(glob->tokens[0]));
        if (!glob)
                return -ENOMEM;
        for (at = begin; at < end; glob->count++) {
                at = read_token(begin, at, end, &glob->tokens[glob->count]);
                if (!at)
                        return -EINVAL;
        }
        *ret_glob = steal_pointer(&glob);
        return 0;
}

struct path_glob *path_glob_free(struct path_glob *glob) {
        free(glob);
        return NULL;
}

/* A place before a token that may also match nothing is one behind it, too. */
static void enter(const struct path_glob *glob, struct places *places, size_t place) {
        places->at[place] = true;
        for (; place < glob->count && glob->tokens[place].kind != TOKEN_SET; place++)
                places->at[place + 1] = true;
}

/* Where a byte leads to from one place. */
static void step(const struct path_glob *glob, size_t place, unsigned byte, struct places *next) {
        const struct token *token = &glob->tokens[place];

        switch (token->kind) {
        case TOKEN_SET:
                if (set_has(token, byte))
                        enter(glob, next, place + 1);
                break;
        case TOKEN_STAR:
                if (byte != '/')
                        enter(glob, next, place);
                break;
        case TOKEN_ANY:
                enter(glob, next, place);
                break;
        case TOKEN_DIRS:
                if (byte == '/')
                        enter(glob, next, place);
                else
                        next->at[place] = true; /* inside of a component: not behind it */
                break;
        }
}

bool path_glob_matches(const struct path_glob *glob, const char *path, size_t size) {
        struct places places[2];
        struct places *now = &places[0], *next = &places[1], *swap;

        memset(now->at, 0, glob->count + 1);
        enter(glob, now, 0);
        for (size_t i = 0; i < size; i++) {
                if (path[i] == '/' && i > 0 && now->at[glob->count])
                        return true; /* a directory above */
                memset(next->at, 0, glob->count + 1);
                for (size_t place = 0; place < glob->count; place++) {
                        if (now->at[place])
                                step(glob, place, (unsigned char)path[i], next);
                }
                swap = now;
                now = next;
                next = swap;
        }
        return now->at[glob->count];
}
