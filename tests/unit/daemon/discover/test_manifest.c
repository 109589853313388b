/* SPDX-License-Identifier: Apache-2.0 */
/* Images are written, read, and damaged byte by byte; one is written by hand. */
#include "daemon/discover/manifest.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <xxhash.h>

#include "common/base.h"
#include "daemon/discover/manifest_file.h"
#include "tests/unit/daemon/fake_store.h"
#include "tests/unit/fail.h"
#include "tests/unit/runner.h"

static uv_loop_t loop;
static struct catalog catalog;
static struct catalog_source *source;
static struct fake_store *store;

static void begin(void) {
        ck_assert_int_eq(uv_loop_init(&loop), 0);
        catalog_init(&catalog);
        store = fake_store_new(&loop, "s3://b/p");
        ck_assert_int_eq(catalog_add_source(&catalog, NULL, &store->store, &source), 0);
}

static void end(void) {
        store->store.operations->close(&store->store, NULL, NULL);
        uv_run(&loop, UV_RUN_DEFAULT);
        catalog_deinit(&catalog);
        ck_assert_int_eq(uv_loop_close(&loop), 0);
        uv_library_shutdown();
}

static struct catalog_file *add(const char *path, uint64_t size, int64_t mtime_ns,
                                const char *tag) {
        struct catalog_file *file;

        ck_assert_int_eq(catalog_add_file(source, path, strlen(path), strlen(tag), &file, NULL), 0);
        file->listed_bytes = size;
        file->mtime_ns = mtime_ns;
        ck_assert_int_eq(catalog_set_tag(file, tag), 0);
        return file;
}

static uint8_t *encode(uint64_t *ret_size) {
        struct sweep_bounds bounds = { 0 };
        uint8_t *image;

        ck_assert_int_eq(sweep_bounds_add(&bounds, "a/"), 0);
        ck_assert_int_eq(sweep_bounds_add(&bounds, "a/b/\xff.tfevents"), 0);
        ck_assert_int_eq(manifest_encode(source, 300, &bounds, &image, ret_size), 0);
        sweep_bounds_deinit(&bounds);
        return image;
}

START_TEST(what_is_written_is_read) {
        struct manifest manifest;
        struct store_row row;
        const char *name;
        uint64_t size;
        size_t name_size;
        uint8_t *image;

        begin();
        add("a/1.tfevents", 42, 1700000000123456789, "\"etag\"");
        add("a/\xff\n.tfevents", 0, INT64_MIN, "");
        add("a/unknown.tfevents", UINT64_MAX, 5, "");
        catalog_set_state(add("b/gone.tfevents", 5, 5, ""), CATALOG_GONE, true);
        image = encode(&size);
        ck_assert_int_eq(manifest_open(&manifest, image, size, "s3://b/p"), 0);
        ck_assert_uint_eq(manifest.window, 300);
        ck_assert_int_eq(manifest_next_bound(&manifest, &name, &name_size), 1);
        ck_assert(name_size == 2 && !memcmp(name, "a/", 2));
        ck_assert_int_eq(manifest_next_bound(&manifest, &name, &name_size), 1);
        ck_assert_int_eq(manifest_next_bound(&manifest, &name, &name_size), 0);
        ck_assert_int_eq(manifest_next_file(&manifest, &row), 1);
        ck_assert(row.name_size == 12 && !memcmp(row.name, "a/1.tfevents", 12));
        ck_assert_uint_eq(row.size_bytes, 42);
        ck_assert_int_eq(row.mtime_ns, 1700000000123456789);
        ck_assert_str_eq(row.tag, "\"etag\"");
        ck_assert_int_eq(manifest_next_file(&manifest, &row), 1);
        ck_assert_int_eq(row.mtime_ns, INT64_MIN);
        ck_assert_int_eq(manifest_next_file(&manifest, &row), 0);
        ck_assert_int_eq(manifest_open(&manifest, image, size, "s3://b/q"), -EBADMSG);
        free(image);
        end();
}
END_TEST

/* Each bit of it counts, and each byte that is missing. */
START_TEST(damage_is_noticed) {
        struct manifest manifest;
        uint64_t size;
        uint8_t *image;

        begin();
        add("a/1.tfevents", 42, 17, "tag");
        image = encode(&size);
        for (uint64_t bit = 0; bit < 8 * size; bit++) {
                image[bit / 8] ^= (uint8_t)(1 << bit % 8);
                ck_assert_int_eq(manifest_open(&manifest, image, size, "s3://b/p"), -EBADMSG);
                image[bit / 8] ^= (uint8_t)(1 << bit % 8);
        }
        for (uint64_t less = 0; less < size; less++)
                ck_assert_int_eq(manifest_open(&manifest, image, less, "s3://b/p"), -EBADMSG);
        ck_assert_int_eq(manifest_open(&manifest, image, size, "s3://b/p"), 0);
        free(image);
        end();
}
END_TEST

/* Byte for byte as the header says that it is, with the XXH3 of another implementation's library. */
START_TEST(the_format_stands) {
        static const char body[] = "s3://b/p"
                                   "\x02\x00"
                                   "a/"
                                   "\x2a\0\0\0\0\0\0\0"
                                   "\x11\0\0\0\0\0\0\0"
                                   "\x0c\x00\x03"
                                   "a/1.tfevents"
                                   "tag";
        uint8_t expected[64 + sizeof(body) - 1] = "hrknown\n\x01\0\0\0\x07\0\0\0";
        struct sweep_bounds bounds = { 0 };
        uint64_t size, checksum;
        uint8_t *image;

        begin();
        expected[24] = sizeof(expected);
        expected[32] = 1; /* files */
        expected[40] = 8; /* URL */
        expected[44] = 1; /* bounds */
        memcpy(expected + 64, body, sizeof(body) - 1);
        checksum = XXH3_64bits(expected, sizeof(expected));
        memcpy(expected + 16, &checksum, 8);
        add("a/1.tfevents", 42, 17, "tag");
        ck_assert_int_eq(sweep_bounds_add(&bounds, "a/"), 0);
        ck_assert_int_eq(manifest_encode(source, 7, &bounds, &image, &size), 0);
        ck_assert_uint_eq(size, sizeof(expected));
        ck_assert_mem_eq(image, expected, size);
        sweep_bounds_deinit(&bounds);
        free(image);
        end();
}
END_TEST

static char *directory;

static void make_directory(void) {
        char name[] = "/tmp/headrace-manifest-XXXXXX";

        ck_assert_ptr_nonnull(mkdtemp(name));
        ck_assert_int_gt(asprintf(&directory, "%s/cache/headrace", name), 0);
}

static void remove_directory(void) {
        char command[256];

        *strstr(directory, "/cache/") = '\0';
        snprintf(command, sizeof(command), "rm -rf %s", directory);
        ck_assert_int_eq(system(command), 0);
        free(directory);
}

START_TEST(files_are_whole_and_our_own) {
        uint8_t *image;
        uint64_t size;
        struct stat found;
        char path[256];

        make_directory();
        ck_assert_int_eq(manifest_file_read(directory, 1, &image, &size), -ENOENT);
        ck_assert_int_eq(manifest_file_write(directory, 1, (const uint8_t *)"abc", 3), 0);
        ck_assert_int_eq(manifest_file_write(directory, 1, (const uint8_t *)"defg", 4), 0);
        ck_assert_int_eq(manifest_file_read(directory, 1, &image, &size), 0);
        ck_assert(size == 4 && !memcmp(image, "defg", 4));
        free(image);
        ck_assert_int_eq(stat(directory, &found), 0);
        ck_assert_int_eq(found.st_mode & 0777, 0700);
        snprintf(path, sizeof(path), "%s/0000000000000001.known", directory);
        ck_assert_int_eq(stat(path, &found), 0);
        ck_assert_int_eq(found.st_mode & 0777, 0600);
        ck_assert_int_eq(unlink(path), 0);
        ck_assert_int_eq(symlink("/etc/passwd", path), 0);
        ck_assert_int_eq(manifest_file_read(directory, 1, &image, &size), -ELOOP);
        ck_assert_int_eq(unlink(path), 0);
        ck_assert_int_eq(mkfifo(path, 0600), 0);
        ck_assert_int_eq(manifest_file_read(directory, 1, &image, &size), -EPERM);
        remove_directory();
}
END_TEST

START_TEST(where_it_is) {
        char *path;

        setenv("HOME", "/home/ada", 1);
        unsetenv("XDG_CACHE_HOME");
        unsetenv("STATE_DIRECTORY");
        path = manifest_file_directory();
        ck_assert_str_eq(path, "/home/ada/.cache/headrace");
        free(path);
        setenv("XDG_CACHE_HOME", "relative", 1);
        path = manifest_file_directory();
        ck_assert_str_eq(path, "/home/ada/.cache/headrace");
        free(path);
        setenv("XDG_CACHE_HOME", "/cache", 1);
        path = manifest_file_directory();
        ck_assert_str_eq(path, "/cache/headrace");
        free(path);
        setenv("STATE_DIRECTORY", "/var/lib/headrace:/var/lib/other", 1);
        path = manifest_file_directory();
        ck_assert_str_eq(path, "/var/lib/headrace");
        free(path);
        unsetenv("STATE_DIRECTORY");
        unsetenv("XDG_CACHE_HOME");
        unsetenv("HOME");
        ck_assert_ptr_null(manifest_file_directory());
}
END_TEST

static bool write_and_read(void) {
        struct sweep_bounds bounds = { 0 };
        uint8_t *image = NULL, *back = NULL;
        uint64_t size, back_size;
        bool well = sweep_bounds_add(&bounds, "a/") == 0 &&
                    manifest_encode(source, 1, &bounds, &image, &size) == 0 &&
                    manifest_file_write(directory, 1, image, size) == 0 &&
                    manifest_file_read(directory, 1, &back, &back_size) == 0 && back_size == size &&
                    !memcmp(back, image, size);

        sweep_bounds_deinit(&bounds);
        free(image);
        free(back);
        return well;
}

START_TEST(whatever_fails) {
        uint64_t n = 1;
        bool well;

        begin();
        add("a/1.tfevents", 42, 17, "tag");
        make_directory();
        do {
                fail_begin(n++, FAIL_ANY_THREAD);
                well = write_and_read();
        } while (fail_end() && !well);
        ck_assert(well);
        ck_assert_uint_ge(n, 5);
        remove_directory();
        end();
}
END_TEST

RUNNER_MAIN("discover/manifest", what_is_written_is_read, damage_is_noticed, the_format_stands,
            files_are_whole_and_our_own, where_it_is, whatever_fails)
