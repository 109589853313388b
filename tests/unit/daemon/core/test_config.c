/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/core/config.h"

#include <errno.h>
#include <fcntl.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/base.h"
#include "daemon/core/config_key.h"
#include "daemon/core/config_value.h"
#include "tests/unit/runner.h"

/* A directory of its own for each test, removed when it ends. */
struct place {
        char directory[64];
        char file[96];
};

static void place_init(struct place *place) {
        strcpy(place->directory, "/tmp/headrace-config-XXXXXX");
        ck_assert_ptr_nonnull(mkdtemp(place->directory));
        snprintf(place->file, sizeof(place->file), "%s/headrace.json", place->directory);
}

static void place_deinit(struct place *place) {
        unlink(place->file);
        rmdir(place->file);
        ck_assert_int_eq(rmdir(place->directory), 0);
}

static void write_file(const char *path, const char *text, size_t size) {
        CLEANUP(close_fdp) int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);

        ck_assert_int_ge(fd, 0);
        ck_assert_int_eq(write(fd, text, size), (ssize_t)size);
}

/* Loads the text as a file, with the file's directory taken out of the error. */
static int load(struct config *config, const char *text, char **ret_error) {
        struct place place;
        char *error = NULL;
        int r;

        place_init(&place);
        write_file(place.file, text, strlen(text));
        r = config_load_file(config, place.file, &error);
        *ret_error = NULL;
        if (error) {
                ck_assert(!strncmp(error, place.directory, strlen(place.directory)));
                *ret_error = strdup(error + strlen(place.directory) + 1);
        }
        free(error);
        place_deinit(&place);
        return r;
}

static void refused(const char *text, const char *expected) {
        CLEANUP(config_deinit) struct config config;
        CLEANUP(freep) char *error = NULL;

        config_init(&config);
        ck_assert_int_eq(load(&config, text, &error), -EINVAL);
        ck_assert_ptr_nonnull(error);
        ck_assert_msg(strstr(error, expected), "'%s' is not in '%s'", expected, error);
}

static void loads(struct config *config, const char *text) {
        CLEANUP(freep) char *error = NULL;
        int r = load(config, text, &error);

        ck_assert_msg(r == 0, "%s: %s", text, error);
}

static void sets(struct config *config, const char *assignment) {
        CLEANUP(freep) char *error = NULL;
        int r = config_set_assignment(config, "--set", assignment, &error);

        ck_assert_msg(r == 0, "%s: %s", assignment, error);
}

static void set_refused(const char *assignment, const char *expected) {
        CLEANUP(config_deinit) struct config config;
        CLEANUP(freep) char *error = NULL;

        config_init(&config);
        ck_assert_int_eq(config_set_assignment(&config, "--set", assignment, &error), -EINVAL);
        ck_assert_ptr_nonnull(error);
        ck_assert_msg(strstr(error, expected), "'%s' is not in '%s'", expected, error);
}

/* The defaults are those that the documents name, not what the table says of itself. */
START_TEST(defaults) {
        CLEANUP(config_deinit) struct config config;

        config_init(&config);
        ck_assert_uint_eq(config.source_count, 0);
        ck_assert_ptr_null(config.socket);
        ck_assert_uint_eq(config.ring_bytes, 268435456);
        ck_assert_int_eq(config.ring_huge, CONFIG_HUGE_TRY);
        ck_assert_uint_eq(config.decoders, 0);
        ck_assert_uint_eq(config.fetch_inflight_bytes, 268435456);
        ck_assert_uint_eq(config.fetch_connections_max, 1024);
        ck_assert_uint_eq(config.fetch_part_bytes, 4194304);
        ck_assert_uint_eq(config.fetch_whole_max_bytes, 67108864);
        ck_assert_int_eq(config.checksum, CONFIG_CHECKSUM_ALWAYS);
        ck_assert_uint_eq(config.record_max_bytes, 0);
        ck_assert_uint_eq(config.payload_inline_max_bytes, 262144);
        ck_assert_int_eq(config.poll_ns, CONFIG_POLL_AUTO);
        ck_assert_uint_eq(config.sessions_max, 0);
        ck_assert_uint_eq(config.allow_uid_count, 0);
        ck_assert_int_eq(config.log_level, LOG_LEVEL_WARNING);
}
END_TEST

START_TEST(filters_of_a_source) {
        CLEANUP(config_deinit) struct config config;

        config_init(&config);
        loads(&config, "{\"sources\": [{\"url\": \"/a\", \"include\": \"x*\", \"exclude\": "
                       "[\"**/old\", \"t[12]\"], \"since\": \"7d\"}, {\"url\": \"/b\", "
                       "\"include\": []}]}");
        ck_assert_str_eq(config.sources[0].filter.include[0], "x*");
        ck_assert_ptr_null(config.sources[0].filter.include[1]);
        ck_assert_str_eq(config.sources[0].filter.exclude[0], "**/old");
        ck_assert_str_eq(config.sources[0].filter.exclude[1], "t[12]");
        ck_assert_ptr_null(config.sources[0].filter.exclude[2]);
        ck_assert_str_eq(config.sources[0].filter.since, "7d");
        ck_assert_ptr_null(config.sources[1].filter.include[0]);
        ck_assert_ptr_null(config.sources[1].filter.since);
        refused("{\"sources\": [{\"url\": \"/a\", \"include\": \"[\"}]}", "sources is {\"url\"");
        refused("{\"sources\": [{\"url\": \"/a\", \"exclude\": [\"\"]}]}", "sources is {\"url\"");
        refused("{\"sources\": [{\"url\": \"/a\", \"exclude\": 7}]}", "sources is {\"url\"");
        refused("{\"sources\": [{\"url\": \"/a\", \"since\": \"soon\"}]}", "sources is {\"url\"");
        refused("{\"sources\": [{\"url\": \"/a\", \"sinse\": \"7d\"}]}", "sources is {\"url\"");
}
END_TEST

START_TEST(access_of_sources_is_read) {
        static const char *const wrong[] = { "{\"url\": \"s3://b\", \"region\": 1}",
                                             "{\"url\": \"s3://b\", \"endpoint\": \"\"}",
                                             "{\"url\": \"s3://b\", \"anonymous\": 1}",
                                             "{\"url\": \"s3://b\", \"requester_pays\": \"yes\"}",
                                             "{\"url\": \"s3://b\", \"secret\": \"x\"}",
                                             "{\"url\": \"http://b\", \"bearer_file\": \"x\"}",
                                             "{\"url\": \"http://b\", \"bearer_file\": true}",
                                             "{\"url\": \"https://b\", "
                                             "\"client_certificate\": \"./x\"}",
                                             "{\"url\": \"https://b\", \"client_key\": \"\"}" };
        CLEANUP(config_deinit) struct config config;

        config_init(&config);
        loads(&config, "{\"sources\": [{\"url\": \"s3://b\", \"endpoint\": \"http://e:1\", "
                       "\"region\": \"r\", \"profile\": \"p\", \"anonymous\": false, "
                       "\"requester_pays\": true}, {\"url\": \"s3://c\", \"anonymous\": true}, "
                       "{\"url\": \"https://d\", \"bearer_file\": \"/t\", "
                       "\"client_certificate\": \"/c\", \"client_key\": \"/k\"}]}");
        ck_assert_str_eq(config.sources[2].access.bearer_file, "/t");
        ck_assert_str_eq(config.sources[2].access.client_certificate, "/c");
        ck_assert_str_eq(config.sources[2].access.client_key, "/k");
        ck_assert_ptr_null(config.sources[1].access.bearer_file);
        ck_assert_str_eq(config.sources[0].access.endpoint, "http://e:1");
        ck_assert_str_eq(config.sources[0].access.region, "r");
        ck_assert_str_eq(config.sources[0].access.profile, "p");
        ck_assert(!config.sources[0].access.anonymous && config.sources[0].access.requester_pays);
        ck_assert_ptr_null(config.sources[1].access.endpoint);
        ck_assert(config.sources[1].access.anonymous && !config.sources[1].access.requester_pays);
        for (size_t i = 0; i < ARRAY_SIZE(wrong); i++) {
                struct config_source source;
                json_t *value = json_loads(wrong[i], 0, NULL);

                ck_assert_msg(config_source_from_json(value, &source) == -EINVAL, "%s", wrong[i]);
                json_decref(value);
        }
}
END_TEST

START_TEST(reads_every_key) {
        CLEANUP(config_deinit) struct config config;

        config_init(&config);
        loads(&config, "{\"sources\": [\"/data\", {\"url\": \"http://h/x\", \"name\": \"exp\"}, "
                       "{\"url\": \"/y\"}],\n"
                       "\"socket\": \"/run/x\", \"ring.size\": \"1G\", \"ring.huge\": \"on\", "
                       "\"decoders\": 3,\n"
                       "\"fetch.inflight\": 4194304, \"fetch.connections_max\": 7, \"fetch.part\": "
                       "\"8m\", \"fetch.whole_max\": \"1T\",\n"
                       "\"checksum\": \"length-only\", \"record_max\": \"5K\", "
                       "\"payload_inline_max\": 1, \"poll\": 1.5, "
                       "\"sessions_max\": 9,\n"
                       "\"allow_uids\": [0, 1000, 4294967294], \"log.level\": \"debug\"}");
        ck_assert_uint_eq(config.source_count, 3);
        ck_assert_str_eq(config.sources[0].url, "/data");
        ck_assert_ptr_null(config.sources[0].name);
        ck_assert_str_eq(config.sources[1].url, "http://h/x");
        ck_assert_str_eq(config.sources[1].name, "exp");
        ck_assert_ptr_null(config.sources[2].name);
        ck_assert_str_eq(config.socket, "/run/x");
        ck_assert_uint_eq(config.ring_bytes, 1073741824);
        ck_assert_int_eq(config.ring_huge, CONFIG_HUGE_ON);
        ck_assert_uint_eq(config.decoders, 3);
        ck_assert_uint_eq(config.fetch_inflight_bytes, 4194304);
        ck_assert_uint_eq(config.fetch_connections_max, 7);
        ck_assert_uint_eq(config.fetch_part_bytes, 8388608);
        ck_assert_uint_eq(config.fetch_whole_max_bytes, UINT64_C(1099511627776));
        ck_assert_int_eq(config.checksum, CONFIG_CHECKSUM_LENGTH_ONLY);
        ck_assert_uint_eq(config.record_max_bytes, 5120);
        ck_assert_uint_eq(config.payload_inline_max_bytes, 1);
        ck_assert_int_eq(config.poll_ns, 1500000000);
        ck_assert_uint_eq(config.sessions_max, 9);
        ck_assert_uint_eq(config.allow_uid_count, 3);
        ck_assert_uint_eq(config.allow_uids[2], 4294967294u);
        ck_assert_int_eq(config.log_level, LOG_LEVEL_DEBUG);
}
END_TEST

START_TEST(later_wins_key_by_key) {
        CLEANUP(config_deinit) struct config config;

        config_init(&config);
        loads(&config, "{\"sources\": [\"/a\", \"/b\"], \"decoders\": 1, \"socket\": \"/s\"}");
        loads(&config, "{\"sources\": [\"/c\"], \"socket\": \"\"}");
        ck_assert_uint_eq(config.source_count, 1);
        ck_assert_str_eq(config.sources[0].url, "/c");
        ck_assert_uint_eq(config.decoders, 1);
        ck_assert_ptr_null(config.socket);
        sets(&config, "decoders=2");
        ck_assert_uint_eq(config.decoders, 2);
}
END_TEST

START_TEST(unknown_key_names_nearest) {
        refused("{\n \"ring.size\": \"64M\",\n \"rign.size\": \"1G\"}",
                "headrace.json:3: unknown key 'rign.size'; did you mean 'ring.size'?");
        refused("{\"fetch.parts\": 1}", "did you mean 'fetch.part'?");
        refused("{\"loglevel\": 1}", "did you mean 'log.level'?");
        refused("{\"\": 1}", "did you mean 'poll'?");
        set_refused("sauce=/x", "--set: unknown key 'sauce'; did you mean 'sources'?");
        set_refused("ring.hugeX=on", "did you mean 'ring.huge'?");
}
END_TEST

START_TEST(long_unknown_key_is_cut) {
        char text[4096] = "{\"";

        memset(text + 2, 'k', 3000);
        strcpy(text + 3002, "\": 1}");
        refused(text, "unknown key 'kkkk");
}
END_TEST

START_TEST(errors_name_line_value_and_what_is_allowed) {
        refused("{\n\n\"fetch.part\" : \"9M\"}", "headrace.json:3: fetch.part is \"9M\", but must "
                                                 "be a number of bytes, also with K, "
                                                 "M, G or T behind it, from 1M to 8M");
        refused("{\"ring.huge\": \"yes\"}",
                "headrace.json:1: ring.huge is \"yes\", but must be \"off\", \"try\" or \"on\"");
        refused("{\"decoders\": 17}", "decoders is 17, but must be a whole number from 0 to 16");
        refused("{\"sources\": [\"/a\", 5]}",
                "sources is 5, but must be an array of URLs or paths");
        refused("{\"poll\": \"often\"}", "poll is \"often\", but must be \"auto\", \"on-demand\", "
                                         "\"never\" or a number of seconds");
        set_refused("log.level=loud", "--set: log.level is \"loud\", but must be \"error\", "
                                      "\"warning\", \"info\" or \"debug\"");
}
END_TEST

START_TEST(duplicate_key) {
        refused("{\n\"decoders\": 1,\n\"decoders\": 2}", "headrace.json:3: duplicate object key");
}
END_TEST

START_TEST(wrong_types) {
        static const char *const values[] = { "null", "true", "{}", "[[]]", "1.5", "\"x\"", "-1" };

        for (size_t i = 0; i < config_key_count; i++) {
                for (size_t j = 0; j < ARRAY_SIZE(values); j++) {
                        bool is_path = config_keys[i].type == CONFIG_TYPE_PATH &&
                                       values[j][0] == '"';
                        bool is_time = (config_keys[i].type == CONFIG_TYPE_POLL ||
                                        config_keys[i].type == CONFIG_TYPE_PRICE) &&
                                       !strcmp(values[j], "1.5");
                        char text[128];

                        bool is_place = config_keys[i].type == CONFIG_TYPE_PLACE &&
                                        !strcmp(values[j], "true");

                        if (is_path || is_time || is_place)
                                continue;
                        snprintf(text, sizeof(text), "{\"%s\": %s}", config_keys[i].name,
                                 values[j]);
                        refused(text, "but must be");
                }
        }
}
END_TEST

START_TEST(numbers_at_their_ends) {
        CLEANUP(config_deinit) struct config config;

        config_init(&config);
        sets(&config, "ring.size=4194304");
        sets(&config, "fetch.part=1M");
        sets(&config, "poll=0.05");
        ck_assert_int_eq(config.poll_ns, 50000000);
        sets(&config, "poll=86400");
        ck_assert_int_eq(config.poll_ns, INT64_C(86400000000000));
        sets(&config, "poll=never");
        ck_assert_int_eq(config.poll_ns, CONFIG_POLL_NEVER);
        sets(&config, "poll=on-demand");
        ck_assert_int_eq(config.poll_ns, CONFIG_POLL_ON_DEMAND);
        sets(&config, "poll=auto");
        ck_assert_int_eq(config.poll_ns, CONFIG_POLL_AUTO);
        ck_assert_uint_eq(config.price_list, CONFIG_PRICE_AUTO);
        sets(&config, "price.list=0.005");
        ck_assert_uint_eq(config.price_list, 5000);
        sets(&config, "price.read=0");
        ck_assert_uint_eq(config.price_read, 0);
        sets(&config, "price.read=1000");
        ck_assert_uint_eq(config.price_read, 1000000000);
        sets(&config, "price.read=auto");
        ck_assert_uint_eq(config.price_read, CONFIG_PRICE_AUTO);
        sets(&config, "remember=/var/lib/x");
        ck_assert_str_eq(config.remember, "/var/lib/x");
        sets(&config, "remember=false");
        ck_assert_str_eq(config.remember, "");
        sets(&config, "remember=true");
        ck_assert_ptr_null(config.remember);
        set_refused("remember=here", "but must be");
        set_refused("price.list=1000.1", "but must be");
        set_refused("price.list=1e3", "but must be");
        set_refused("poll=on-demand ", "but must be");
        set_refused("ring.size=4194303", "but must be");
        set_refused("fetch.part=8388609", "but must be");
        set_refused("fetch.connections_max=0", "but must be");
        set_refused("poll=0.049", "but must be");
        set_refused("poll=86401", "but must be");
}
END_TEST

START_TEST(huge_and_odd_numbers) {
        static const char *const values[] = { "18446744073709551616",
                                              "99999999999999999999999999",
                                              "18446744073709551615K",
                                              "16777216T",
                                              "-1",
                                              "+1",
                                              " 1",
                                              "1 ",
                                              "",
                                              "K",
                                              "1KB",
                                              "1.5M",
                                              "0x10",
                                              "1e9",
                                              "inf",
                                              "nan" };

        for (size_t i = 0; i < ARRAY_SIZE(values); i++) {
                char text[128];

                snprintf(text, sizeof(text), "fetch.whole_max=%s", values[i]);
                set_refused(text, "but must be");
                snprintf(text, sizeof(text), "poll=%s", values[i]);
                set_refused(text, "but must be");
        }
        refused("{\"ring.size\": 99999999999999999999}", "too big integer");
        refused("{\"poll\": 1e999}", "real number overflow");
        refused("{\"allow_uids\": [4294967295]}", "but must be an array of user numbers");
}
END_TEST

START_TEST(lists_from_text) {
        CLEANUP(config_deinit) struct config config;

        config_init(&config);
        sets(&config, "sources=http://h/a=b,c");
        ck_assert_uint_eq(config.source_count, 1);
        ck_assert_str_eq(config.sources[0].url, "http://h/a=b,c");
        sets(&config, "sources= [\"/a\", {\"url\": \"/b\", \"name\": \"n\"}]");
        ck_assert_uint_eq(config.source_count, 2);
        ck_assert_str_eq(config.sources[1].name, "n");
        sets(&config, "sources=[not json");
        ck_assert_str_eq(config.sources[0].url, "[not json");
        sets(&config, "sources=");
        ck_assert_uint_eq(config.source_count, 0);
        sets(&config, "allow_uids=1000");
        ck_assert_uint_eq(config.allow_uids[0], 1000);
        sets(&config, "allow_uids=[1, 2]");
        ck_assert_uint_eq(config.allow_uid_count, 2);
        sets(&config, "admin_uids=[7]");
        ck_assert_uint_eq(config.admin_uid_count, 1);
        ck_assert_uint_eq(config.admin_uids[0], 7);
        ck_assert_uint_eq(config.allow_uid_count, 2);
        sets(&config, "allow_sources=[\"/a\", \"s3://b\"]");
        ck_assert_str_eq(config.allow_sources[1], "s3://b");
        ck_assert_ptr_null(config.allow_sources[2]);
        sets(&config, "allow_sources=/c");
        ck_assert_str_eq(config.allow_sources[0], "/c");
        ck_assert_ptr_null(config.allow_sources[1]);
        set_refused("allow_sources=[1]", "allow_sources is 1");
        set_refused("allow_uids=me", "allow_uids is \"me\"");
        set_refused("decoders", "'decoders' is not KEY=VALUE");
        set_refused("socket=\xff", "is not UTF-8");
}
END_TEST

START_TEST(sources_with_wrong_members) {
        refused("{\"sources\": [{\"name\": \"n\"}]}", "sources is {\"name\":\"n\"}");
        refused("{\"sources\": [{\"url\": \"/a\", \"colour\": 1}]}", "sources is {\"url\"");
        refused("{\"sources\": [{\"url\": \"/a\", \"name\": \"\"}]}", "sources is {\"url\"");
        refused("{\"sources\": [\"\"]}", "sources is \"\"");
        refused("{\"sources\": \"/a\"}", "sources is \"/a\"");
}
END_TEST

START_TEST(failed_value_leaves_old_one) {
        CLEANUP(config_deinit) struct config config;
        CLEANUP(freep) char *error = NULL;

        config_init(&config);
        sets(&config, "sources=[\"/a\"]");
        ck_assert_int_eq(config_set(&config, "--set", "sources", "[\"/b\", 1]", &error), -EINVAL);
        ck_assert_uint_eq(config.source_count, 1);
        ck_assert_str_eq(config.sources[0].url, "/a");
}
END_TEST

START_TEST(path_that_is_too_long) {
        char text[256] = "socket=/";

        memset(text + 8, 'x', 106);
        CLEANUP(config_deinit) struct config config;
        config_init(&config);
        sets(&config, text);
        text[8 + 106] = 'x';
        set_refused(text, "but must be a path of at most 107 bytes");
}
END_TEST

START_TEST(broken_json) {
        refused("", "headrace.json:1: ");
        refused("{\n\"decoders\": 1,\n}", "headrace.json:3: ");
        refused("[]", "one JSON object");
        refused("5", "one JSON object");
        refused("{} x", "headrace.json:1: ");
        refused("{\"socket\": \"\xff\"}", "headrace.json:1: ");
        refused("{\"socket\": \"a\\u0000b\"}", "headrace.json:1: ");
}
END_TEST

static void file_refused(const char *path, int expected, const char *said) {
        CLEANUP(config_deinit) struct config config;
        CLEANUP(freep) char *error = NULL;

        config_init(&config);
        ck_assert_int_eq(config_load_file(&config, path, &error), expected);
        ck_assert_ptr_nonnull(error);
        ck_assert_msg(strstr(error, said) && strstr(error, path), "%s", error);
}

START_TEST(files_that_are_none) {
        struct place place;

        place_init(&place);
        file_refused(place.file, -ENOENT, "cannot be read: No such file or directory");
        file_refused(place.directory, -EISDIR, "cannot be read: Is a directory");
        ck_assert_int_eq(mkfifo(place.file, 0600), 0);
        file_refused(place.file, -EINVAL, "not a plain file");
        place_deinit(&place);
}
END_TEST

START_TEST(file_without_permission) {
        struct place place;

        place_init(&place);
        write_file(place.file, "{}", 2);
        ck_assert_int_eq(chmod(place.file, 0), 0);
        ck_assert_int_eq(chmod(place.directory, 0755), 0);
        if (geteuid() == 0)
                ck_assert_int_eq(seteuid(65534), 0);
        file_refused(place.file, -EACCES, "cannot be read: Permission denied");
        if (getuid() == 0)
                ck_assert_int_eq(seteuid(0), 0);
        place_deinit(&place);
}
END_TEST

START_TEST(file_that_is_too_large) {
        struct place place;

        place_init(&place);
        write_file(place.file, "{}", 2);
        ck_assert_int_eq(truncate(place.file, (1 << 20) + 1), 0);
        file_refused(place.file, -EFBIG, "larger than 1 MiB");
        place_deinit(&place);
}
END_TEST

START_TEST(environment) {
        CLEANUP(config_deinit) struct config config;
        CLEANUP(freep) char *error = NULL;

        config_init(&config);
        setenv("HEADRACE_RING_SIZE", "64M", 1);
        setenv("HEADRACE_FETCH_CONNECTIONS_MAX", "5", 1);
        setenv("HEADRACE_SOURCES", "/a", 1);
        setenv("HEADRACE_UNKNOWN", "x", 1); /* other programs have variables, too */
        ck_assert_int_eq(config_load_environment(&config, &error), 0);
        ck_assert_uint_eq(config.ring_bytes, 67108864);
        ck_assert_uint_eq(config.fetch_connections_max, 5);
        ck_assert_str_eq(config.sources[0].url, "/a");
        setenv("HEADRACE_LOG_LEVEL", "loud", 1);
        ck_assert_int_eq(config_load_environment(&config, &error), -EINVAL);
        ck_assert_ptr_nonnull(strstr(error, "HEADRACE_LOG_LEVEL: log.level is \"loud\""));
}
END_TEST

START_TEST(user_file) {
        CLEANUP(config_deinit) struct config config;
        CLEANUP(freep) char *error = NULL;
        char home[] = "/tmp/headrace-config-XXXXXX", path[128];

        config_init(&config);
        ck_assert_ptr_nonnull(mkdtemp(home));
        setenv("HOME", home, 1);
        unsetenv("XDG_CONFIG_HOME");
        ck_assert_int_eq(config_load_files(&config, &error), 0); /* nothing is there */
        snprintf(path, sizeof(path), "%s/.config/headrace", home);
        *strrchr(path, '/') = '\0';
        ck_assert_int_eq(mkdir(path, 0700), 0);
        strcat(path, "/headrace");
        ck_assert_int_eq(mkdir(path, 0700), 0);
        strcat(path, "/headrace.json");
        write_file(path, "{\"decoders\": 5}", 15);
        ck_assert_int_eq(config_load_files(&config, &error), 0);
        ck_assert_uint_eq(config.decoders, 5);

        write_file(path, "{\"decoders\": 6}", 15);
        *strstr(path, "/headrace/") = '\0';
        setenv("XDG_CONFIG_HOME", path, 1);
        unsetenv("HOME");
        ck_assert_int_eq(config_load_files(&config, &error), 0);
        ck_assert_uint_eq(config.decoders, 6);

        strcat(path, "/headrace/headrace.json");
        write_file(path, "{", 1);
        ck_assert_int_eq(config_load_files(&config, &error), -EINVAL);
        ck_assert_ptr_nonnull(strstr(error, path));
        setenv("XDG_CONFIG_HOME", "relative", 1);
        ck_assert_int_eq(config_load_files(&config, &error), 0); /* no HOME either */

        unlink(path);
        for (int i = 0; i < 3; i++) {
                *strrchr(path, '/') = '\0';
                ck_assert_int_eq(rmdir(path), 0);
        }
}
END_TEST

/*
 * conf/headrace.json is read with jansson alone, so that a mistake of the writer cannot hide
 * itself.
 */
START_TEST(file_with_defaults_is_the_table) {
        CLEANUP(json_decrefp)
        json_t *file = json_load_file("conf/headrace.json", JSON_REJECT_DUPLICATES, NULL);

        ck_assert_ptr_nonnull(file);
        ck_assert_uint_eq(json_object_size(file), config_key_count);
        for (size_t i = 0; i < config_key_count; i++) {
                CLEANUP(freep) char *text = config_key_default(&config_keys[i]);
                CLEANUP(json_decrefp) json_t *value = json_loads(text, JSON_DECODE_ANY, NULL);

                ck_assert_msg(json_equal(value, json_object_get(file, config_keys[i].name)),
                              "%s is not %s", config_keys[i].name, text);
        }
}
END_TEST

START_TEST(file_with_defaults_gives_the_defaults) {
        CLEANUP(config_deinit) struct config config;
        CLEANUP(config_deinit) struct config initial;
        CLEANUP(freep) char *error = NULL;

        config_init(&config);
        config_init(&initial);
        sets(&config, "ring.size=64M");
        ck_assert_msg(config_load_file(&config, "conf/headrace.json", &error) == 0, "%s", error);
        free(config.sources); /* empty lists are not NULL once they were read */
        free(config.allow_uids);
        free(config.admin_uids);
        config.sources = NULL;
        config.allow_uids = config.admin_uids = NULL;
        ck_assert_mem_eq(&config, &initial, sizeof(config));
}
END_TEST

START_TEST(manual_has_the_table) {
        CLEANUP(freep) char *keys = NULL;
        CLEANUP(freep) char *manual = calloc(1, 1 << 16);
        size_t size;
        FILE *memory = open_memstream(&keys, &size),
             *file = fopen("docs/man/headraced.conf.5", "re");

        ck_assert_ptr_nonnull(file);
        ck_assert_int_gt(fread(manual, 1, (1 << 16) - 1, file), 0);
        fclose(file);
        ck_assert_int_eq(config_key_write_all(memory, CONFIG_FORMAT_MANUAL), 0);
        fclose(memory);
        ck_assert_msg(strstr(manual, keys), "docs/man/headraced.conf.5 must hold this:\n%s", keys);
}
END_TEST

START_TEST(help_names_every_key) {
        CLEANUP(freep) char *help = NULL;
        size_t size;
        FILE *memory = open_memstream(&help, &size);

        ck_assert_int_eq(config_key_write_all(memory, CONFIG_FORMAT_HELP), 0);
        fclose(memory);
        for (size_t i = 0; i < config_key_count; i++) {
                ck_assert_ptr_nonnull(strstr(help, config_keys[i].name));
                ck_assert_ptr_nonnull(strstr(help, config_keys[i].help));
        }
}
END_TEST

RUNNER_MAIN("core/config", defaults, filters_of_a_source, access_of_sources_is_read,
            reads_every_key, later_wins_key_by_key, unknown_key_names_nearest,
            long_unknown_key_is_cut, errors_name_line_value_and_what_is_allowed, duplicate_key,
            wrong_types, numbers_at_their_ends, huge_and_odd_numbers, lists_from_text,
            sources_with_wrong_members, failed_value_leaves_old_one, path_that_is_too_long,
            broken_json, files_that_are_none, file_without_permission, file_that_is_too_large,
            environment, user_file, file_with_defaults_is_the_table,
            file_with_defaults_gives_the_defaults, manual_has_the_table, help_names_every_key)
