/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/core/fd_limit.h"

#include <sys/resource.h>

#include "common/base.h"

#define FD_LIMIT_RESERVE 64      /* for files, sockets of clients and libraries */
#define FD_LIMIT_MOST (1u << 20) /* some systems say "unlimited"; tables are sized by it */

unsigned fd_limit_for_connections(void) {
        struct rlimit limit;
        rlim_t wanted;

        if (getrlimit(RLIMIT_NOFILE, &limit) < 0)
                return 8;
        wanted = min_u64(limit.rlim_max, FD_LIMIT_MOST);
        if (limit.rlim_cur < wanted) {
                rlim_t before = limit.rlim_cur;

                limit.rlim_cur = wanted;
                if (setrlimit(RLIMIT_NOFILE, &limit) < 0)
                        limit.rlim_cur = before;
        }
        limit.rlim_cur = min_u64(limit.rlim_cur, FD_LIMIT_MOST);
        return limit.rlim_cur < FD_LIMIT_RESERVE + 8
                       ? 8
                       : (unsigned)(limit.rlim_cur - FD_LIMIT_RESERVE);
}
