/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/unit/daemon/store/credentials_harness.h"

#include <check.h>
#include <stdio.h>
#include <string.h>

void credentials_harness_begin(struct credentials_harness *harness) {
        memset(harness, 0, sizeof(*harness));
        fault_server_start(&harness->server);
        ck_assert_int_eq(uv_loop_init(&harness->loop), 0);
}

void credentials_harness_end(struct credentials_harness *harness) {
        if (harness->credentials)
                credentials_close(harness->credentials, NULL, NULL);
        uv_run(&harness->loop, UV_RUN_DEFAULT);
        ck_assert_int_eq(uv_loop_close(&harness->loop), 0);
        uv_library_shutdown(); /* libuv keeps a pipe of its own to the end */
        fault_server_stop(&harness->server);
}

static void on_ready(void *userdata, const struct store_failure *failure) {
        struct credentials_harness *harness = userdata;

        harness->outcome = *failure;
        harness->is_done = true;
        uv_stop(&harness->loop); /* it is always a timer's doing */
}

const struct credentials_value *credentials_harness_wait(struct credentials_harness *harness) {
        struct credentials_wait *wait;

        harness->is_done = false;
        ck_assert_int_eq(credentials_wait(harness->credentials, on_ready, harness, &wait), 0);
        ck_assert(!harness->is_done); /* never from inside */
        while (!harness->is_done)
                uv_run(&harness->loop, UV_RUN_ONCE);
        return harness->outcome.class == STORE_OK ? credentials_now(harness->credentials) : NULL;
}

void credentials_harness_give_up(struct credentials_harness *harness, unsigned turns) {
        struct credentials_wait *wait;

        harness->is_done = false;
        ck_assert_int_eq(credentials_wait(harness->credentials, on_ready, harness, &wait), 0);
        for (unsigned i = 0; i < turns && !harness->is_done; i++)
                uv_run(&harness->loop, UV_RUN_NOWAIT);
        if (!harness->is_done)
                credentials_wait_cancel(wait);
}

void credentials_harness_write(struct credentials_harness *harness, const char *name,
                               const char *text) {
        char path[256];
        FILE *file;

        test_file_write(harness->server.root, name, 0);
        snprintf(path, sizeof(path), "%s/%s", harness->server.root, name);
        file = fopen(path, "we");
        ck_assert_ptr_nonnull(file);
        fputs(text, file);
        ck_assert_int_eq(fclose(file), 0);
}
