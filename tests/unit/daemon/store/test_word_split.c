/* SPDX-License-Identifier: Apache-2.0 */
/* Expected words are those of a POSIX shell (IEEE Std 1003.1, 2.2 Quoting). */
#include "daemon/store/word_split.h"

#include <errno.h>
#include <string.h>

#include "common/base.h"
#include "tests/unit/runner.h"

static void check(const char *line, const char *expected) {
        CLEANUP(freep) char **words = NULL;
        char joined[256] = "";

        ck_assert_int_eq(word_split(line, &words), 0);
        for (size_t i = 0; words[i]; i++)
                snprintf(joined + strlen(joined), sizeof(joined) - strlen(joined), "<%s>",
                         words[i]);
        ck_assert_str_eq(joined, expected);
}

START_TEST(words_quotes_and_backslashes) {
        check("a", "<a>");
        check("  a\tb  c\n", "<a><b><c>");
        check("'a b' \"c d\" e\\ f", "<a b><c d><e f>");
        check("a'b'\"c\"", "<abc>");
        check("'' \"\"", "<><>");
        check("\"a\\\"b\\n\\\\\" 'a\\b'", "<a\"b\\n\\><a\\b>");
        check("$HOME *", "<$HOME><*>"); /* nothing is expanded */
        check("a\\", "<a\\>");
}
END_TEST

START_TEST(what_is_no_command_is_refused) {
        static const char *const lines[] = { "", "  ", "'a", "a \"b" };

        for (size_t i = 0; i < ARRAY_SIZE(lines); i++) {
                char **words;

                ck_assert_msg(word_split(lines[i], &words) == -EINVAL, "%s", lines[i]);
        }
}
END_TEST

RUNNER_MAIN("store/word_split", words_quotes_and_backslashes, what_is_no_command_is_refused)
