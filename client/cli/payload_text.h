/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The members of a JSON line that say what a payload holds: its shape, and its data or their
 * SHA-256. Hashes are of the elements row-major and little-endian; of strings each as a 64-bit size
 * and the bytes. A tensor that is one number has its value and bits instead of a hash.
 */
#pragma once

#include "client/cli/record_shape.h"
#include "client/cli/record_text.h"
#include "client/cli/sink.h"

void payload_text_tensor(struct sink *sink, const struct hr_record *record,
                         const struct record_shape *shape, enum payload_mode mode);
void payload_text_blobs(struct sink *sink, const struct record_shape *shape,
                        enum payload_mode mode);
