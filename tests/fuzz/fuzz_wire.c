/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Any bytes through the frame reader, whole and in pieces: the same frames must come out, within
 * the limits, and nothing after what is malformed. The first byte says how long the pieces are, its
 * lowest bit whether lines are accepted.
 */
#include "tests/fuzz/fuzz.h"

#include <errno.h>

#include "common/base.h"
#include "common/wire.h"

#define BODY_MAX 512

struct digest {
        uint64_t value, frames;
        int end; /* what the reader said last */
};

static void take_frames(struct wire_reader *reader, struct digest *digest) {
        struct wire_frame frame;

        while ((digest->end = wire_reader_next(reader, &frame)) == 0) {
                MUST(frame.size_bytes <= BODY_MAX);
                MUST(frame.fd_count == 0);
                digest->value = digest->value * 31 + frame.type * 7u + frame.flags;
                for (uint32_t i = 0; i < frame.size_bytes; i++)
                        digest->value = digest->value * 31 + frame.body[i];
                digest->frames++;
        }
        MUST(digest->end == STAGE_MORE || digest->end == -EPROTO);
}

static struct digest read_all(const uint8_t *data, size_t size, size_t piece, bool accept_lines) {
        struct wire_reader reader;
        struct digest digest = { .end = STAGE_MORE };

        wire_reader_init(&reader, BODY_MAX, accept_lines, false);
        for (size_t at = 0; at < size && digest.end == STAGE_MORE;) {
                /*
                 * As from a socket: no more than there is room for. There is always some, or a
                 * frame or an end was there.
                 */
                size_t room = sizeof(struct wire_header) + BODY_MAX - (reader.end - reader.begin);
                size_t fed = min_u64(min_u64(piece, size - at), room);

                MUST(fed > 0);
                MUST(wire_reader_feed(&reader, data + at, fed) == 0);
                at += fed;
                take_frames(&reader, &digest);
        }
        wire_reader_deinit(&reader);
        return digest;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
        struct digest whole, pieces;

        if (size < 1)
                return 0;
        whole = read_all(data + 1, size - 1, size, data[0] & 1);
        pieces = read_all(data + 1, size - 1, 1 + (data[0] >> 1) % 16, data[0] & 1);
        MUST(whole.value == pieces.value && whole.frames == pieces.frames &&
             whole.end == pieces.end);
        return 0;
}
