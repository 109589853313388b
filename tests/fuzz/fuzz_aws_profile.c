/* SPDX-License-Identifier: Apache-2.0 */
/* The shared files of AWS: whatever they hold, it is parsed within bounds. */
#include "tests/fuzz/fuzz.h"

#include "daemon/store/aws_profile.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
        struct aws_profiles profiles = { 0 };

        if (aws_profiles_parse(&profiles, (const char *)data, size, size % 2) == 0)
                aws_profiles_get(&profiles, "profile", "default", "region");
        aws_profiles_deinit(&profiles);
        return 0;
}
