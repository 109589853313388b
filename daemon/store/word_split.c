/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/store/word_split.h"

#include <ctype.h>
#include <errno.h>
#include <string.h>

#include "common/base.h"

/*
 * One word at *line, written at *to with a NUL; both are moved behind it. Inside of double quotes a
 * backslash keeps itself but before a quote, a backslash and what a shell expands.
 */
static int take_word(const char **line, char **to) {
        const char *in = *line;
        char *out = *to, quote = '\0';

        for (; *in && (quote || !isspace((unsigned char)*in)); in++) {
                if (quote == '\0' && (*in == '\'' || *in == '"')) {
                        quote = *in;
                } else if (quote && *in == quote) {
                        quote = '\0';
                } else if (*in == '\\' && quote != '\'' && in[1] &&
                           (quote == '\0' || strchr("\"\\$`", in[1]))) {
                        *out++ = *++in;
                } else {
                        *out++ = *in;
                }
        }
        *out++ = '\0';
        *line = in;
        *to = out;
        return quote ? -EINVAL : 0;
}

int word_split(const char *line, char ***ret_words) {
        size_t size = strlen(line), most = size / 2 + 2, count = 0;
        char **words = malloc(most * sizeof(char *) + size + 1), *to;
        int r = 0;

        if (!words)
                return -ENOMEM;
        to = (char *)(words + most);
        while (r == 0) {
                line += strspn(line, " \t\n\r\v\f");
                if (!*line)
                        break;
                words[count++] = to;
                r = take_word(&line, &to);
        }
        words[count] = NULL;
        if (r < 0 || count == 0) {
                free(words);
                return -EINVAL;
        }
        *ret_words = words;
        return 0;
}
