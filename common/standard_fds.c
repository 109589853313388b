/* SPDX-License-Identifier: Apache-2.0 */
#include "common/standard_fds.h"

#include <errno.h>
#include <fcntl.h>

#include "common/base.h"

int standard_fds_fill(void) {
        for (int fd = STDIN_FILENO; fd <= STDERR_FILENO; fd++) {
                /* The wrong way round: a lost output is to be noticed. */
                int flags = fd == STDIN_FILENO ? O_WRONLY : O_RDONLY;

                /* open() takes the lowest free number, which is this one; children need it, too. */
                if (fcntl(fd, F_GETFD) < 0 && open("/dev/null", flags) < 0)
                        return -errno;
        }
        return 0;
}
