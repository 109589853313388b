/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A fuzz target: one function that takes any bytes. Built twice: with libFuzzer (make fuzz), and
 * with replay.c, which runs it over the files of tests/fuzz/corpus/NAME (make check).
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
