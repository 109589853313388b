/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The members of a JSON line that say what a payload holds: its shape, and its data or their
 * SHA-256. Hashes are of the elements row-major and little-endian; of strings each as a 64-bit size
 * and the bytes. A tensor that is one number has its value and bits instead of a hash.
 */
#pragma once

#include "client/cli/record_text.h"
#include "client/cli/sink.h"
#include "client/include/headrace.h"

void payload_text_tensor(struct sink *sink, const struct hr_record *record,
                         const struct hr_value *value, enum payload_mode mode);
void payload_text_blobs(struct sink *sink, const struct hr_value *value, enum payload_mode mode);
