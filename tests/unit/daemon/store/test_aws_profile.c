/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/store/aws_profile.h"

#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/base.h"
#include "tests/unit/fail.h"
#include "tests/unit/runner.h"

static const char config[] = "; a comment\r\n"
                             "[default]\r\n"
                             "region = eu-west-1\r\n"
                             "[profile research]  # with a comment\n"
                             "Region=us-west-2\n"
                             "s3 =\n"
                             "    region = nested\n"
                             "  # indented comment\n"
                             "source_profile = base   ; the one below\n"
                             "endpoint_url = http://host:9000/#anchor\n"
                             "no value\n"
                             "[ profile   spaced name ]\n"
                             "region = x\n"
                             "[sso-session research]\n"
                             "sso_region = ap-south-1\n"
                             "[ignored]\n"
                             "[profile empty]\n"
                             "[broken\n"
                             "region = lost\n"
                             "[profile indented]\n"
                             "  region = kept\n"
                             "\tsource_profile = base\n";

static const char credentials[] = "[research]\n"
                                  "aws_access_key_id = AKID\n"
                                  "region = of credentials\n"
                                  "[default]\n"
                                  "aws_access_key_id=first\n"
                                  "aws_access_key_id=second\n";

static struct aws_profiles profiles;

static void parse(void) {
        profiles = (struct aws_profiles){ 0 };
        ck_assert_int_eq(aws_profiles_parse(&profiles, config, strlen(config), false), 0);
        ck_assert_int_eq(aws_profiles_parse(&profiles, credentials, strlen(credentials), true), 0);
}

static void check(const char *kind, const char *name, const char *key, const char *expected) {
        const char *value = aws_profiles_get(&profiles, kind, name, key);

        ck_assert_msg(value && strcmp(value, expected) == 0, "%s %s %s is %s", kind, name, key,
                      value ? value : "not set");
}

START_TEST(settings_of_both_files) {
        parse();
        check("profile", "default", "region", "eu-west-1");
        check("profile", "default", "aws_access_key_id", "second");
        check("profile", "research", "aws_access_key_id", "AKID");
        check("profile", "research", "region", "of credentials"); /* the later file */
        check("profile", "research", "source_profile", "base");
        check("profile", "research", "endpoint_url", "http://host:9000/#anchor");
        check("profile", "spaced name", "region", "x");
        check("profile", "indented", "region", "kept");
        check("profile", "indented", "source_profile", "base");
        check("sso-session", "research", "sso_region", "ap-south-1");
        ck_assert_ptr_null(aws_profiles_get(&profiles, "profile", "research", "no value"));
        ck_assert_ptr_null(aws_profiles_get(&profiles, "profile", "empty", "region"));
        ck_assert(aws_profiles_have(&profiles, "profile", "empty"));
        ck_assert(!aws_profiles_have(&profiles, "profile", "nowhere"));
        ck_assert(!aws_profiles_have(&profiles, "sso-session", "empty"));
        aws_profiles_deinit(&profiles);
}
END_TEST

START_TEST(files_that_change_are_noticed) {
        char directory[] = "/tmp/headrace-test-XXXXXX", path[64];
        FILE *file;

        ck_assert_ptr_nonnull(mkdtemp(directory));
        snprintf(path, sizeof(path), "%s/credentials", directory);
        setenv("AWS_SHARED_CREDENTIALS_FILE", path, 1);
        setenv("AWS_CONFIG_FILE", "/nowhere", 1);
        ck_assert_int_eq(aws_profiles_load(&profiles), 0);
        ck_assert(!aws_profiles_have(&profiles, "profile", "late"));
        ck_assert(!aws_profiles_have_changed(&profiles));
        file = fopen(path, "we");
        fputs("[late]\n", file);
        fclose(file);
        ck_assert(aws_profiles_have_changed(&profiles));
        aws_profiles_deinit(&profiles);
        ck_assert_int_eq(aws_profiles_load(&profiles), 0);
        ck_assert(aws_profiles_have(&profiles, "profile", "late"));
        ck_assert(!aws_profiles_have_changed(&profiles));
        aws_profiles_deinit(&profiles);
        unlink(path);
        rmdir(directory);
}
END_TEST

START_TEST(memory_that_is_not_there) {
        for (uint64_t n = 1;; n++) {
                int r;

                profiles = (struct aws_profiles){ 0 };
                fail_begin(n, FAIL_THIS_THREAD);
                r = aws_profiles_parse(&profiles, config, strlen(config), false);
                aws_profiles_deinit(&profiles);
                if (!fail_end())
                        break;
                ck_assert_int_lt(r, 0);
        }
}
END_TEST

RUNNER_MAIN("store/aws_profile", settings_of_both_files, files_that_change_are_noticed,
            memory_that_is_not_there)
