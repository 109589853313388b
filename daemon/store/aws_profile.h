/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The shared files of AWS, ~/.aws/config and ~/.aws/credentials, in the dialect of INI that its SDKs
 * read: "[profile name]" and "[sso-session name]" in the one, "[name]" in the other, settings below a
 * setting indented. Source: "File format", AWS SDKs and Tools Reference Guide. Not bound to a thread.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "daemon/store/secret_file.h"

struct aws_setting {
        char *section; /* "profile x" (also what is "[x]" in the credentials file), "sso-session x" */
        char *key, *value;
};

struct aws_profiles {
        struct aws_setting *settings; /* a later one wins over an earlier one of the same key */
        size_t count, space;
        char *paths[2]; /* config, credentials; NULL: there is no home directory */
        struct file_stamp stamps[2];
};

/*
 * Reads both files, where AWS_CONFIG_FILE, AWS_SHARED_CREDENTIALS_FILE and HOME say. Files that
 * cannot be read are as if they were not there. -ENOMEM.
 */
int aws_profiles_load(struct aws_profiles *profiles);
void aws_profiles_deinit(struct aws_profiles *profiles);

/* True if one of the files is another one now. */
bool aws_profiles_have_changed(const struct aws_profiles *profiles);

/* Takes the text of one file. */
int aws_profiles_parse(struct aws_profiles *profiles, const char *text, size_t size,
                       bool is_credentials);

/* The profile's name that AWS_PROFILE or AWS_DEFAULT_PROFILE gives, or "default". */
const char *aws_profile_name(void);

bool aws_profiles_have(const struct aws_profiles *profiles, const char *kind, const char *name);

/* kind: "profile" or "sso-session". Borrowed; NULL: it is not set. */
const char *aws_profiles_get(const struct aws_profiles *profiles, const char *kind,
                             const char *name, const char *key);
