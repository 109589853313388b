/* SPDX-License-Identifier: Apache-2.0 */
/* Expected times are of Python: datetime.fromisoformat(TEXT).timestamp(). */
#include "common/since.h"

#include <errno.h>
#include <string.h>

#include "common/base.h"
#include "tests/unit/runner.h"

#define S INT64_C(1000000000)

START_TEST(points_in_time) {
        static const struct {
                const char *text;
                int64_t time_ns;
        } cases[] = {
                { "2026-11-24T08:00:00Z", 1795507200 * S },
                { "2026-11-24T09:00:00.5+01:00", 1795507200 * S + S / 2 },
                { "2026-11-24t00:30:00-07:30", 1795507200 * S },
                { "2026-11-24 08:00:00.123456789123z", 1795507200 * S + 123456789 },
                { "2026-11-24", 1795478400 * S },
                { "2024-02-29", 1709164800 * S },
                { "1970-01-01", 0 },
                { "90s", 910 * S },
                { "15m", 100 * S },
                { "0d", 1000 * S },
                { "2h", -6200 * S },
                { "1w", -603800 * S },
        };

        for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
                int64_t time_ns = -1;

                ck_assert_msg(since_parse(cases[i].text, 1000 * S, &time_ns) == 0, "%s",
                              cases[i].text);
                ck_assert_msg(time_ns == cases[i].time_ns, "%s", cases[i].text);
        }
}
END_TEST

START_TEST(what_is_none) {
        static const char *const wrong[] = { "",
                                             "d",
                                             "7",
                                             "7x",
                                             "7dd",
                                             "-7d",
                                             "7d ",
                                             " 7d",
                                             "99999999999999999999d",
                                             "4000w5",
                                             "36601d",
                                             "2026-11-24T08:00:00",
                                             "2026-13-01",
                                             "2026-02-29",
                                             "2026-04-31",
                                             "2026-00-01",
                                             "2026-1-1",
                                             "1969-12-31",
                                             "2300-01-01",
                                             "2026-11-24T24:00:00Z",
                                             "2026-11-24T08:60:00Z",
                                             "2026-11-24T08:00:00.Z",
                                             "2026-11-24T08:00:00+24:00",
                                             "2026-11-24T08:00:00+0100",
                                             "2026-11-24T08:00:00Zz",
                                             "yesterday" };
        int64_t time_ns = 17;

        for (size_t i = 0; i < ARRAY_SIZE(wrong); i++)
                ck_assert_msg(since_parse(wrong[i], 1000 * S, &time_ns) == -EINVAL, "%s", wrong[i]);
        ck_assert_int_eq(time_ns, 17);
}
END_TEST

RUNNER_MAIN("common/since", points_in_time, what_is_none)
