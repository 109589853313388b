/* SPDX-License-Identifier: Apache-2.0 */
/* Frames on the Unix socket between the daemon and its clients; docs/PROTOCOL.md describes them. */
#pragma once

#include <assert.h>
#include <stdint.h>

enum wire_type {
        WIRE_JSON = 1,   /* a JSON-RPC 2.0 message */
        WIRE_EXTENT = 2, /* a struct ring_entry, then its extent (nothing, for an entry without) */
        WIRE_WAKE = 3,   /* empty */
};

enum wire_flag {
        WIRE_MORE = 1, /* the next frame goes on with this extent */
};

struct wire_header {
        uint8_t type;
        uint8_t fds; /* descriptors that belong to this frame */
        uint16_t flags;
        uint32_t size_bytes; /* of the body */
};

static_assert(sizeof(struct wire_header) == 8, "layout");

#define WIRE_FDS_MAX 4
#define WIRE_CLIENT_BODY_MAX (1u << 20)
#define WIRE_DAEMON_BODY_MAX (16u << 20)

/* JSON-RPC error codes of our own; those of the standard keep their numbers. */
enum wire_error {
        WIRE_E_PARSE = -32700,
        WIRE_E_INVALID = -32600,
        WIRE_E_METHOD = -32601,
        WIRE_E_PARAMS = -32602,
        WIRE_E_INTERNAL = -32603,
        WIRE_E_NOT_ALLOWED = -32001,
        WIRE_E_SOURCE = -32002, /* the source cannot be listed */
        /* a limit of the daemon refuses it; the message names it and the way out */
        WIRE_E_LIMIT = -32003,
        WIRE_E_VERSION_GONE = -32010, /* payload: that file version is gone */
        WIRE_E_UNREADABLE = -32011,   /* payload: it cannot be read; data has the code */
};
