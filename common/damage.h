/* SPDX-License-Identifier: Apache-2.0 */
/* Why bytes of an event file are skipped. The words are those of the protocol and for people. */
#pragma once

enum damage {
        DAMAGE_NONE = 0,
        DAMAGE_LENGTH_CRC,   /* no right header: skipped up to the next one */
        DAMAGE_DATA_CRC,     /* a right header, but not the payload that belongs to it */
        DAMAGE_NOT_AN_EVENT, /* right CRCs, but no Event can be decoded of the payload */
        DAMAGE_TOO_LARGE,    /* above record_max, or names that no extent has room for */
        DAMAGE_ZEROS,        /* a hole: nothing but zeros, and a record behind them */
        DAMAGE_GZIP,         /* the file begins as a gzip stream */
        DAMAGE_ZLIB,
        DAMAGE_COUNT,
};

/*
 * "length CRC", "data CRC", "not an event", "too large", "zeros", "not an event file (gzip)", "not
 * an event file (zlib)".
 */
const char *damage_name(enum damage reason);
