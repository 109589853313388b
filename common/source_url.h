/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The one spelling of a source's URL: daemon and clients compare and hash it, and people see it, so
 * it holds no user, password or query (which may be a token). Pure but for the working directory.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

/*
 * Makes the normal form of a URL or a path; *ret_url is the caller's to free.
 *
 *   path, relative or not  absolute path without ".", ".." and doubled or trailing slashes;
 *                          symbolic links stay
 *   file:///x, file:/x     the path; %XX decoded; a host other than localhost is -EINVAL
 *   SCHEME://...           scheme and host in lower case, default ports of http and https left out;
 *                          user, password, query, fragment and trailing slashes dropped; the path
 *                          is otherwise kept as it is
 *
 * A ".." is resolved by the file system where the path exists (it may follow a symbolic link), by
 * the text where it does not. -EINVAL: empty, no host, a %00; -ENOMEM; what getcwd(3) says.
 */
int source_url_normalize(const char *url, char **ret_url);

/* True for SCHEME://..., false for a path. Of a normal form. */
bool source_url_has_scheme(const char *url);

/*
 * True where the host of a http or https URL is an address that is link-local, in whatever notation:
 * 169.254.0.0/16, fe80::/10, which is where clouds hand out credentials.
 */
bool source_url_is_link_local(const char *url);

/*
 * Is url the source itself or below it? Both in normal form. *ret_prefix_size is then how many
 * bytes of url the source and the slash behind it take: url + *ret_prefix_size is the name below
 * the source, "" for the source itself.
 */
bool source_url_is_below(const char *source, const char *url, size_t *ret_prefix_size);
