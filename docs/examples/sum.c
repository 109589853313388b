/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Sums one tag of every run below a URL, in place in the daemon's memory.
 *
 *      ./sum URL TAG
 *
 * With the library installed: cc -o sum sum.c $(pkg-config --cflags --libs headrace)
 */
#include <headrace.h>
#include <stdio.h>
#include <stdlib.h>

int main(int argc, char **argv) {
        struct hr_subscription subscription = HR_SUBSCRIPTION;
        struct hr_connection *connection = NULL;
        const struct hr_record *record;
        unsigned long long count = 0;
        struct hr_batch batch;
        char *error = NULL;
        double sum = 0;
        int r;

        if (argc != 3) {
                fprintf(stderr, "usage: sum URL TAG\n");
                return 2;
        }
        if (hr_open(argv[1], NULL, &connection, &error)) {
                fprintf(stderr, "sum: %s\n", error ? error : "out of memory");
                free(error);
                return 1;
        }
        subscription.tags = (const char *const[]){ argv[2], NULL };
        r = hr_subscribe(connection, &subscription);
        while (r == 0 && (r = hr_next(connection, -1, &batch)) == 0) {
                while ((record = hr_record_next(&batch))) {
                        sum += record->value;
                        count++;
                }
        }
        if (r == HR_END)
                printf("%llu records, sum %.17g\n", count, sum);
        else
                fprintf(stderr, "sum: %s\n", hr_error(connection));
        hr_close(connection);
        return r == HR_END ? 0 : 1;
}
