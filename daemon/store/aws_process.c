/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A profile whose credentials a program prints. Source: "Process credential provider", AWS SDKs and
 * Tools Reference Guide.
 */
#include <errno.h>
#include <string.h>

#include "common/base.h"
#include "daemon/store/aws_source.h"
#include "daemon/store/command.h"
#include "daemon/store/failure.h"
#include "daemon/store/word_split.h"

#define PROCESS_TIMEOUT_MS 60000

struct aws_run {
        struct command *command;
        char *profile;
        aws_on_done *on_done;
        void *userdata;
};

static void run_free(struct aws_run *run) {
        free(run->profile);
        free(run);
}

static void end(struct aws_run *run, struct credentials_value *take_value,
                const struct store_failure *failure) {
        aws_on_done *on_done = run->on_done;
        void *userdata = run->userdata;

        run_free(run);
        on_done(userdata, take_value, failure);
}

/* Why there is no value. What it printed is never in it. */
static void set_failure(const struct aws_run *run, const struct command_result *result,
                        struct store_failure *ret_failure) {
        const char *what = result->timed_out        ? "takes longer than a minute"
                           : result->error          ? strerror(-result->error)
                           : result->signal         ? "was killed"
                           : result->exit_code != 0 ? "failed"
                                                    : "printed no credentials";

        failure_set(ret_failure, STORE_PERMANENT, "credential_process",
                    "credential_process of profile %s: %s", run->profile, what);
        if (result->words[0])
                failure_advise(ret_failure, "it said: %s", result->words);
}

static void on_result(void *userdata, const struct command_result *result) {
        static const struct aws_json_names names = { "AccessKeyId", "SecretAccessKey",
                                                     "SessionToken", "Expiration" };
        struct aws_run *run = userdata;
        struct credentials_value value;
        struct store_failure failure;
        char identity[160];
        int r = -EBADMSG;

        snprintf(identity, sizeof(identity), "credential_process (profile %s)", run->profile);
        if (!result->timed_out && !result->error && !result->signal && result->exit_code == 0)
                r = aws_value_from_json(&value, result->output, result->output_size, &names,
                                        identity);
        if (r < 0)
                set_failure(run, result, &failure);
        end(run, r == 0 ? &value : NULL, r == 0 ? NULL : &failure);
}

static int start(const struct aws_context *context, struct credentials_value *ret_value,
                 char why[CREDENTIALS_WHY_BYTES], aws_on_done *on_done, void *userdata,
                 struct aws_run **ret_run) {
        CLEANUP(freep) char **words = NULL;
        struct aws_run *run;
        int r = word_split(aws_setting(context, "credential_process"), &words);

        (void)ret_value;
        if (r == -EINVAL) {
                snprintf(why, CREDENTIALS_WHY_BYTES,
                         "credential_process of profile %s: a quote is open", context->profile);
                return CREDENTIALS_BROKEN;
        }
        if (r < 0)
                return r;
        run = calloc(1, sizeof(*run));
        if (!run)
                return -ENOMEM;
        run->on_done = on_done;
        run->userdata = userdata;
        run->profile = strdup(context->profile);
        r = run->profile ? command_start(context->loop, words, PROCESS_TIMEOUT_MS, on_result, run,
                                         &run->command)
                         : -ENOMEM;
        if (r < 0) {
                run_free(run);
                return r;
        }
        *ret_run = run;
        return CREDENTIALS_RUNNING;
}

static void cancel(struct aws_run *run) {
        command_cancel(run->command);
        run_free(run);
}

const struct aws_source aws_source_process = { .name = "profile",
                                               .start = start,
                                               .cancel = cancel };
