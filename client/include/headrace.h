/* SPDX-License-Identifier: Apache-2.0 */
/*
 * libheadrace: reads the records of TensorBoard event files from headraced, in place in its shared
 * memory.
 *
 *      struct hr_connection *connection;
 *      struct hr_batch batch;
 *      const struct hr_record *record;
 *
 *      if (hr_open("/data/logs", NULL, &connection, &error) < 0) ...
 *      hr_subscribe(connection, NULL);
 *      while ((r = hr_next(connection, -1, &batch)) == 0)
 *              while ((record = hr_record_next(&batch)))
 *                      printf("%s %f\n", hr_record_series(&batch, record)->tag.bytes,
 *                      record->value);
 *
 * Threads: one connection, one thread at a time; different connections share nothing. The library
 * keeps no global state, never logs, installs no signal handler and raises no SIGPIPE.
 *
 * Results: 0 is success. Positive values are outcomes that the caller is expected to handle (enum
 * hr_outcome). Negative ones are -errno: something broke; hr_error() says what in words. -EPROTO is
 * a daemon that breaks the protocol; after it, -ECONNRESET and -EPIPE the connection is of no more
 * use.
 *
 * Trust: what comes from the daemon is checked before it is used, so that a wrong daemon gives an
 * error and no crash. The memory is shared, though: a daemon that changes what it has handed out
 * can make a reader see two different things. The daemon's user is trusted that far.
 *
 * Names are bytes, usually UTF-8, and have a NUL behind them that is not counted.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

enum hr_outcome {
        HR_OK = 0,
        HR_AGAIN = 1,        /* nothing yet: poll hr_fd() for hr_events(), and call again */
        HR_END = 2,          /* the stream is complete; nothing more will come */
        HR_E_SOURCE = 3,     /* the source cannot be listed */
        HR_E_REFUSED = 4,    /* the daemon does not do this; hr_error() has its reason */
        HR_E_GONE = 5,       /* that version of the file is no longer there */
        HR_E_UNREADABLE = 6, /* it cannot be read */
        /* a limit of the daemon stands against it; hr_error() names it and the way out */
        HR_E_LIMIT = 7,
};

struct hr_text {
        const char *bytes;
        size_t size;
};

/* ---- Connections ----------------------------------------------------------------------------- */

struct hr_connection;

enum hr_daemon {
        HR_DAEMON_ANY = 0,     /* a running one that has the URL, else a private one */
        HR_DAEMON_RUNNING = 1, /* never start one */
        HR_DAEMON_PRIVATE = 2, /* always start one */
};

/* Start from HR_OPTIONS, which is what NULL means. */
struct hr_options {
        size_t size_bytes;
        enum hr_daemon daemon;
        /* path of the only socket to try; NULL: HEADRACE_SOCKET, the own user's, the system's */
        const char *socket;
        /*
         * headraced to start; NULL: HEADRACE_DAEMON, beside this program, the one installed, PATH
         */
        const char *program;
        const char *client; /* name of this program for the daemon's status; NULL: "libheadrace" */
        /* more arguments for a private daemon, NULL at the end; or NULL */
        const char *const *arguments;
};

#define HR_OPTIONS \
        { .size_bytes = sizeof(struct hr_options) }

/*
 * Connects to a daemon that has the URL (or path) under one of its sources and, if it is the own
 * user's, the same storage settings in its environment; else starts a private one that ends with
 * the connection. *ret_error (may be NULL) is a text for people where the result is not 0, the
 * caller's to free().
 *
 * -EINVAL: not a URL; -ENOENT: no running daemon has it and none may be started, or none can be
 * found; -EPROTO, -ENOMEM, and what socket(2), connect(2) and posix_spawn(3) say. HR_E_REFUSED: the
 * daemon speaks no protocol that this library does.
 */
int hr_open(const char *url, const struct hr_options *options,
            struct hr_connection **ret_connection, char **ret_error);

/*
 * Connects to the daemon that runs, whatever its sources are. As hr_open(), with HR_DAEMON_RUNNING.
 */
int hr_connect(const struct hr_options *options, struct hr_connection **ret_connection,
               char **ret_error);

/* Takes a connected stream socket, on failure too. As hr_open(). */
int hr_connect_fd(int take_fd, const struct hr_options *options,
                  struct hr_connection **ret_connection, char **ret_error);

/*
 * Ends the connection, and the private daemon if it has one. All that was given out becomes
 * invalid. Takes NULL, returns NULL.
 */
struct hr_connection *hr_close(struct hr_connection *connection);

/* What went wrong in the last call that did not return 0, for people. Borrowed; never NULL. */
const char *hr_error(const struct hr_connection *connection);

/* Which daemon this is, for people: "private daemon /usr/bin/headraced (pid 71)". Borrowed. */
const char *hr_daemon_name(const struct hr_connection *connection);
bool hr_daemon_is_private(const struct hr_connection *connection);

/*
 * The URL as the daemon names it, of the source that has what hr_open() was given. NULL after
 * hr_connect(). Borrowed.
 */
const char *hr_source(const struct hr_connection *connection);

/*
 * Where in that source the URL is: "" for all of it, else a run name without slash at the end.
 * Borrowed.
 */
const char *hr_prefix(const struct hr_connection *connection);

/* For poll(2): the socket and the events to wait for. Valid after HR_AGAIN, until the next call. */
int hr_fd(const struct hr_connection *connection);
short hr_events(const struct hr_connection *connection);

/* ---- Control calls --------------------------------------------------------------------------- */

/*
 * Calls a method of docs/PROTOCOL.md and waits for its answer. params is a JSON object as text, or
 * NULL; *ret_result (may be NULL) is the result as JSON text, the caller's to free(). HR_E_*: the
 * daemon answered with an error. -EINVAL: params is no JSON.
 */
int hr_call(struct hr_connection *connection, const char *method, const char *params,
            char **ret_result);

/*
 * As hr_call(), but does not wait: HR_AGAIN where it is under way, for hr_call_finish(). One at a
 * time: until then other calls, and hr_payload() of what must be fetched, return -EBUSY.
 */
int hr_call_start(struct hr_connection *connection, const char *method, const char *params);

/*
 * Waits at most timeout_ms (-1: as long as it takes) for the answer to the call that was started.
 * HR_AGAIN: not yet.
 */
int hr_call_finish(struct hr_connection *connection, int timeout_ms, char **ret_result);

/*
 * Called with each notification of the daemon, from inside of other calls. It may not call the
 * connection's functions.
 */
void hr_on_notification(struct hr_connection *connection,
                        void (*function)(void *userdata, const char *method, const char *params),
                        void *userdata);

/* ---- Streams --------------------------------------------------------------------------------- */

enum hr_order {
        HR_ORDER_RUN = 0,    /* files of a run by name, runs as they come */
        HR_ORDER_SORTED = 1, /* by run, file, offset */
};

enum hr_transport {
        /*
         * records lie in the daemon's memory: no copy, no system call while there is something to
         * read
         */
        HR_TRANSPORT_MAP = 0,
        HR_TRANSPORT_INLINE = 1, /* extents come over the socket */
};

enum hr_from {
        HR_FROM_START = 0,
        HR_FROM_NOW = 1,
        HR_FROM_POSITIONS = 2, /* files without a position start at 0 */
};

/* A place in a file, from which reading goes on. */
struct hr_position {
        uint64_t file_id, file_version;
        uint64_t offset; /* of a TFRecord */
        uint32_t index;  /* of a value in it */
        uint32_t reserved;
};

/*
 * Which records withdraw earlier points of their series: a job that crashed goes on from its last
 * checkpoint and writes steps again. docs/TENSORBOARD.md, "Steps and restarts", has the rules.
 */
enum hr_purge {
        HR_PURGE_NONE = 0, /* nobody asks */
        /*
         * as TensorBoard's Python loader: session starts; without file_version an Event that goes
         * back
         */
        HR_PURGE_START = 1,
        /*
         * as TensorBoard's data server: every step that is not larger than the last one of its
         * series; but files that were written at the same time leave each other alone
         */
        HR_PURGE_ORDER = 2,
};

/*
 * Start from HR_SUBSCRIPTION, which is what NULL means: everything that is there, from the start.
 * Lists end with NULL; NULL: all.
 */
struct hr_subscription {
        size_t size_bytes;
        /* globs as fnmatch(3), where '*' matches '/' too */
        const char *const *runs, *const *tags, *const *plugins;
        enum hr_from from;
        enum hr_order order;
        enum hr_transport transport;
        bool follow; /* go on when all is read */
        const struct hr_position *positions;
        size_t position_count;
        /*
         * hr_withdrawal_next() says what is withdrawn. Whole runs are looked at: the daemon sends
         * all series of the runs, and the library filters. Points from before the stream's start
         * are not known.
         */
        enum hr_purge purge;
};

#define HR_SUBSCRIPTION \
        { .size_bytes = sizeof(struct hr_subscription) }

/*
 * Starts the stream; one a connection. -EBUSY: there is one; -EBADF: what the daemon sent cannot be
 * mapped; as hr_call().
 */
int hr_subscribe(struct hr_connection *connection, const struct hr_subscription *subscription);

enum hr_kind {
        HR_KIND_SCALAR = 1,
        HR_KIND_TENSOR = 2,
        HR_KIND_BLOBS = 3,
        /*
         * of a file, not of a series; dtype is 1 file_version, 2 session start, 3 stop, 4
         * checkpoint
         */
        HR_KIND_MARK = 4,
};

enum hr_record_flag {
        HR_RECORD_EXTERNAL = 1,  /* the payload is not here: hr_payload() fetches it */
        HR_RECORD_CONVERTED = 2, /* from a legacy value: its modern form */
        HR_RECORD_MALFORMED = 4, /* a tensor that does not fit its own shape */
        /* a legacy value without modern form, as written: one blob with the bytes of its field */
        HR_RECORD_CARRIED = 8,
        HR_RECORD_NUMBER = 16, /* a tensor that is one real number: `value` */
};

#define HR_SERIES_NONE UINT32_MAX

/* One value of one series at one step, as it lies in the ring (docs/EXTENT.md). */
struct hr_record {
        int64_t step;
        double wall_time; /* seconds since 1970, as written */
        double value;     /* of a one-element number, else 0 */
        uint32_t series;  /* hr_record_series() */
        uint8_t kind;     /* enum hr_kind */
        uint8_t dtype;    /* TensorFlow DataType of the value as it was written */
        uint16_t flags;   /* enum hr_record_flag */
        /* of a scalar without payload: its bits as written, zero-extended */
        uint64_t payload_offset;
        uint64_t payload_size;
        uint64_t source_offset; /* of the TFRecord in its file */
        uint32_t source_size;
        uint32_t value_index; /* of the value in its Event */
};

enum hr_class {
        HR_CLASS_UNKNOWN = 0,
        HR_CLASS_SCALAR = 1,
        HR_CLASS_TENSOR = 2,
        HR_CLASS_BLOBS = 3,
};

/* An event file. The same for all its batches; lives as long as the connection. */
struct hr_file {
        uint64_t id;
        struct hr_text source; /* URL */
        /*
         * its directory, relative to what hr_open() was given; "." for that itself; the bytes lie
         * at the same place for all files of a run
         */
        struct hr_text run;
        struct hr_text path; /* likewise */
        void *userdata;      /* the caller's, NULL at first */
};

/*
 * One tag of one run, with the metadata known so far. The same for all its records; lives as long
 * as the connection.
 */
struct hr_series {
        uint64_t id;
        /* 0, 1, 2, ... in the order of appearance: an index for the caller's own tables */
        uint32_t number;
        /* grows when the texts below or the class change, which is at hr_next() only */
        uint32_t revision;
        uint8_t data_class; /* enum hr_class */
        uint8_t reserved[7];
        struct hr_text run, tag;
        struct hr_text plugin, content, display_name, description;
        void *userdata; /* the caller's, NULL at first */
};

enum hr_event {
        HR_RECORDS = 1,  /* records of a file (maybe none that the filters let through) */
        HR_REPLACED = 2, /* the file has a new version: withdraw its points; it starts anew */
        HR_GONE = 3,     /* the file left storage: withdraw its points */
        HR_LOST = 4,     /* lost_count records can no longer be read */
};

enum hr_batch_flag {
        HR_BATCH_REPLAY = 1,  /* from before this stream began, or fetched again */
        HR_BATCH_LATE = 2,    /* of a file that had been settled without them */
        HR_BATCH_DAMAGED = 4, /* some bytes of the range could not be decoded */
};

/*
 * What hr_next() gives: records of one range of one file, or news of a file. Valid until the next
 * hr_next(). The records of a range come in several batches where a series changes within it.
 */
struct hr_batch {
        enum hr_event event;
        uint32_t flags;       /* enum hr_batch_flag */
        struct hr_file *file; /* NULL: news of a file of which nothing was delivered */
        uint64_t file_id, file_version;
        uint64_t begin_offset, end_offset; /* of the range in the file */
        uint64_t lost_count;
        uint32_t skipped_count;  /* damaged records in the range; told once, with its last batch */
        uint32_t record_count;   /* before the filters */
        double min_wall_time;    /* of all Events in the range; +infinity: none */
        struct hr_position next; /* where a stream would go on behind this batch */

        /* Of the inline functions. */
        const struct hr_record *at_, *end_;
        struct hr_series *const *series_;
        const void *extent_;
        bool marks_;
        const struct hr_withdrawal *withdrawal_, *withdrawal_end_;
};

/*
 * Gives back the last batch and waits at most timeout_ms (-1: as long as it takes, 0: not at all)
 * for the next one. HR_AGAIN: nothing yet, the daemon will wake hr_fd(); HR_END; HR_E_SOURCE: a
 * stream without follow whose source cannot be listed; -ECONNRESET: the daemon is gone (what it had
 * delivered was read first; go on elsewhere from the positions).
 */
int hr_next(struct hr_connection *connection, int timeout_ms, struct hr_batch *ret_batch);

/*
 * The next record of the batch that the filters let through; NULL at its end. Marks come only where
 * neither tags nor plugins filter.
 */
static inline const struct hr_record *hr_record_next(struct hr_batch *batch) {
        while (batch->at_ != batch->end_) {
                const struct hr_record *record = batch->at_++;

                if (record->series != HR_SERIES_NONE ? batch->series_[record->series] != NULL
                                                     : batch->marks_)
                        return record;
        }
        return NULL;
}

/* Its series; NULL for a mark. */
static inline struct hr_series *hr_record_series(const struct hr_batch *batch,
                                                 const struct hr_record *record) {
        return record->series != HR_SERIES_NONE ? batch->series_[record->series] : NULL;
}

/*
 * Points that are no longer valid: those told before of that series and file, of that step or more.
 * Where one job wrote a run, that is how it starts again. Points may be withdrawn twice.
 */
struct hr_withdrawal {
        const struct hr_record *record; /* that withdraws them: they go before it is taken */
        struct hr_series *series;       /* NULL: all series of batch->file->run */
        struct hr_file *file;           /* NULL: all files of that run */
        int64_t from_step;
};

/*
 * The next withdrawal by a record up to this one, or by one that the filters hold back; call it
 * before the record is taken, until it gives NULL, and with record NULL at the end of the batch.
 * Those of series that the filters hold back are not told.
 *
 *      while ((record = hr_record_next(&batch))) {
 *              while ((withdrawal = hr_withdrawal_next(&batch, record)))
 *                      ...
 *      }
 *      while ((withdrawal = hr_withdrawal_next(&batch, NULL)))
 *              ...
 */
static inline const struct hr_withdrawal *hr_withdrawal_next(struct hr_batch *batch,
                                                             const struct hr_record *record) {
        if (batch->withdrawal_ == batch->withdrawal_end_ ||
            (record && batch->withdrawal_->record > record))
                return NULL;
        return batch->withdrawal_++;
}

/*
 * What was withdrawn of one run so far, to find out at its end which of its points stand. Its
 * memory grows with the restarts, not with the points: the caller keeps those, each with what
 * hr_withdrawn_count() said when it was told.
 */
struct hr_withdrawn;

struct hr_withdrawn *hr_withdrawn_new(void);                            /* NULL: no memory */
struct hr_withdrawn *hr_withdrawn_free(struct hr_withdrawn *withdrawn); /* takes NULL, returns it */

/*
 * Notes points that are withdrawn. series NULL: of all series of the run; file NULL: of all its
 * files. All points of a file (HR_REPLACED, HR_GONE) are those from INT64_MIN on. -ENOMEM.
 */
int hr_withdrawn_add(struct hr_withdrawn *withdrawn, const struct hr_series *series,
                     const struct hr_file *file, int64_t from_step);

/* How many were noted so far. */
uint64_t hr_withdrawn_count(const struct hr_withdrawn *withdrawn);

/* True if a point that was told after `count` of them was withdrawn since. */
bool hr_withdrawn_has(const struct hr_withdrawn *withdrawn, const struct hr_series *series,
                      const struct hr_file *file, int64_t step, uint64_t count);

/*
 * A tensor or blob sequence. Elements of fixed size lie row-major; a blob sequence is a rank-1
 * string tensor.
 */
struct hr_payload {
        uint8_t dtype; /* TensorFlow DataType */
        uint8_t rank;  /* 0 where it is unknown */
        bool rank_known;
        bool malformed; /* the elements are not those that the shape says */
        uint32_t element_count;
        uint32_t element_bytes; /* 0: strings */
        bool repeated;          /* one element was written, and stands for all */
        const int64_t *shape;   /* rank of them */
        const void *elements;   /* fixed size: the elements; strings: use hr_payload_string() */
        uint64_t elements_size;
        const uint64_t *end_offset_;
};

/*
 * The payload of a record of the current batch, in place; an external one is fetched (waiting for
 * it). Valid until the next hr_payload() or hr_next(). -ENOENT: a scalar or a mark, which have
 * none; HR_E_GONE, HR_E_UNREADABLE; -EPROTO.
 */
int hr_payload(struct hr_connection *connection, const struct hr_batch *batch,
               const struct hr_record *record, struct hr_payload *ret_payload);

/* index < element_count. One string or blob; not NUL-terminated. */
struct hr_text hr_payload_string(const struct hr_payload *payload, uint32_t index);

/*
 * What a record shows in its series, as TensorBoard has it (docs/TENSORBOARD.md): for a series of
 * scalars, a tensor of one number is a scalar; for one of blobs, a tensor of strings is a sequence
 * of blobs. A value that is not of its series' class shows as what it was written as.
 */
struct hr_value {
        uint8_t kind;       /* enum hr_kind: scalar, tensor or blobs */
        bool fits;          /* it is a value of its series' class */
        bool has_payload;   /* always so for a tensor or blobs, unless it was not to be fetched */
        uint8_t bits_bytes; /* of a scalar: the width of `bits`; 0: they are not known */
        uint32_t blob_count;
        double number; /* of a scalar */
        uint64_t bits; /* of a scalar: as written, zero-extended */
        struct hr_payload payload;
        uint32_t blob_step_; /* of the functions below */
};

/*
 * The value of a record of the current batch, with what is known of its series now. fetch: an
 * external payload is fetched, else left out. Valid as long as a payload. -ENOENT: a mark; else as
 * hr_payload().
 */
int hr_value(struct hr_connection *connection, const struct hr_batch *batch,
             const struct hr_record *record, bool fetch, struct hr_value *ret_value);

/* index < blob_count. One blob; not NUL-terminated. */
struct hr_text hr_value_blob(const struct hr_value *value, uint32_t index);

/* The version of the library, "0.1.0". */
const char *hr_version(void);

#ifdef __cplusplus
}
#endif
