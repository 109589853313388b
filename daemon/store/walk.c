/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Two kinds of work go to the pool: scanning a directory, and looking at a batch of its names. A
 * thread touches only its piece of work and what never changes (the walk's root, the directories
 * above); all else is the loop thread's.
 */
#include "daemon/store/walk.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "common/base.h"
#include "daemon/store/event_name.h"
#include "daemon/store/failure.h"

#define WALK_BATCH 128         /* names that one piece of work looks at */
#define WALK_BATCH_SLOW 8      /* where looking takes long: first so many, then each by itself */
#define WALK_PIECES_ENOUGH 512 /* more than threads: nothing is gained by more */
#define WALK_ADVISE_NAMES 32   /* on FUSE: of so many names one is looked at while they are read */
#define WALK_DIRECTORIES_MOST 1000000
#define WALK_DEPTH_MOST 256
#define WALK_SLOW_NS 1000000

/* Names one behind the other, each with its NUL. */
struct names {
        char *bytes;
        size_t size, space, count;
};

struct directory {
        struct directory *parent; /* holds a reference to it */
        unsigned refs;            /* loop thread */
        unsigned depth;
        dev_t device; /* known once scanned */
        ino_t inode;
        size_t path_size;
        char path[]; /* relative to the root, "" for the root; NUL-terminated */
};

struct found {
        size_t name_at; /* in names */
        uint64_t size_bytes;
        int64_t mtime_ns;
        uint64_t device, inode;
};

struct piece {
        struct work work;
        struct walk *walk;
        struct directory *directory;
        struct names names;       /* a scan finds them; a look gets them */
        size_t left_at;           /* of names: what is behind has not been looked at */
        struct names directories; /* below this one */
        struct found *found;
        size_t found_count;
        bool root_is_file;
        int error;      /* of the directory, an errno */
        int look_error; /* first of a name that is there but cannot be looked at */
        size_t look_error_at;
};

struct walk {
        struct work_pool *pool;
        struct notify *notify;
        char *root;
        struct mount mount; /* of the root, when that is scanned */
        struct store_list_callbacks callbacks;
        void *userdata;
        void (*on_released)(void *owner);
        void *owner;
        unsigned pieces; /* in hands of the pool */
        unsigned directories;
        uint64_t handed; /* pieces so far */
        struct store_list_counts counts;
        struct store_failure failure;
        bool finished; /* no further callback */
        _Atomic bool stop;
};

static int names_add(struct names *names, const char *name, size_t size) {
        if (names->space - names->size < size + 1) {
                size_t space = max_u64(names->space * 2, align_up(names->size + size + 1, 64));
                char *bytes = realloc(names->bytes, space);

                if (!bytes)
                        return -ENOMEM;
                names->bytes = bytes;
                names->space = space;
        }
        MUST(names->bytes);
        memcpy(names->bytes + names->size, name, size);
        names->bytes[names->size + size] = '\0';
        names->size += size + 1;
        names->count++;
        return 0;
}

#define names_for_each(name, names) \
        for (const char *name = (names)->bytes; name && name < (names)->bytes + (names)->size; \
             name += strlen(name) + 1)

static struct directory *directory_unref(struct directory *directory) {
        while (directory && --directory->refs == 0) {
                struct directory *parent = directory->parent;

                free(directory);
                directory = parent;
        }
        return NULL;
}

static struct directory *directory_new(struct directory *parent, const char *name) {
        size_t size = (parent && parent->path_size ? parent->path_size + 1 : 0) + strlen(name);
        struct directory *directory = calloc(1, sizeof(*directory) + size + 1);

        if (!directory)
                return NULL;
        directory->refs = 1;
        directory->path_size = size;
        if (parent) {
                parent->refs++;
                directory->parent = parent;
                directory->depth = parent->depth + 1;
                sprintf(directory->path, "%s%s%s", parent->path, parent->path_size ? "/" : "",
                        name);
        }
        return directory;
}

/* The path of a name in a directory (of the directory itself: ""), the caller's to free. */
static char *full_path(const struct walk *walk, const struct directory *directory,
                       const char *name) {
        bool root_is_slash = walk->root[0] == '/' && walk->root[1] == '\0';
        char *path;

        if (asprintf(&path, "%s%s%s%s%s", root_is_slash ? "" : walk->root,
                     directory->path_size || root_is_slash ? "/" : "", directory->path,
                     *name && !(root_is_slash && !directory->path_size) ? "/" : "", name) < 0)
                return NULL;
        return path;
}

/* On a thread. */
static bool is_loop(const struct directory *directory) {
        for (const struct directory *above = directory->parent; above; above = above->parent) {
                if (above->device == directory->device && above->inode == directory->inode)
                        return true;
        }
        return false;
}

static int add_found(struct piece *piece, const char *name, const struct stat *stat) {
        struct found *found = realloc(piece->found, (piece->found_count + 1) * sizeof(*found));

        if (!found)
                return -ENOMEM;
        piece->found = found;
        found[piece->found_count++] = (struct found){
                .name_at = (size_t)(name - piece->names.bytes),
                .size_bytes = (uint64_t)stat->st_size,
                .mtime_ns = (int64_t)stat->st_mtim.tv_sec * 1000000000 + stat->st_mtim.tv_nsec,
                .device = stat->st_dev,
                .inode = stat->st_ino,
        };
        return 0;
}

/* On a thread. What a name leads to: a row, a directory, or nothing that matters. */
static int look_at(struct piece *piece, const char *name) {
        CLEANUP(freep) char *path = full_path(piece->walk, piece->directory, name);
        struct stat stat_now;

        if (!path)
                return -ENOMEM;
        if (stat(path, &stat_now) < 0) {
                /* Gone meanwhile, or a link that leads nowhere. */
                if (errno != ENOENT && errno != ELOOP && errno != ENOTDIR && !piece->look_error) {
                        piece->look_error = errno;
                        piece->look_error_at = (size_t)(name - piece->names.bytes);
                }
                return 0;
        }
        if (S_ISDIR(stat_now.st_mode))
                return names_add(&piece->directories, name, strlen(name));
        if (S_ISREG(stat_now.st_mode) && event_name_is(name, strlen(name)))
                return add_found(piece, name, &stat_now);
        return 0;
}

/* Where looking takes long, the rest is left to other threads. */
static void look_run(struct work *work) {
        struct piece *piece = list_owner(work, struct piece, work);
        uint64_t begin_ns = uv_hrtime();
        int r = 0;

        while (r == 0 && piece->left_at < piece->names.size &&
               !atomic_load_explicit(&piece->walk->stop, memory_order_relaxed)) {
                const char *name = piece->names.bytes + piece->left_at;

                piece->left_at += strlen(name) + 1;
                r = look_at(piece, name);
                if (uv_hrtime() - begin_ns > WALK_SLOW_NS)
                        break;
        }
        piece->error = -r;
}

/*
 * On a thread. The kernel asks a FUSE file system for the attributes together with the names as long
 * as somebody looks at some of them; else each name costs a look-up of its own, and the look-ups in
 * one directory may have to wait for each other.
 */
static void advise(const struct piece *piece, const char *name) {
        CLEANUP(freep) char *path = full_path(piece->walk, piece->directory, name);
        struct stat stat_now;

        if (path && stat(path, &stat_now) < 0)
                return; /* whoever looks at it for its own sake sees that */
}

/* On a thread. Sorts the entries into directories, names that must be looked at, and the rest. */
static int read_entries(struct piece *piece, DIR *stream) {
        bool is_fuse = strncmp(piece->walk->mount.type, "fuse", 4) == 0;
        struct dirent *entry;
        size_t read = 0;
        int r = 0;

        while (r == 0 && !atomic_load_explicit(&piece->walk->stop, memory_order_relaxed)) {
                const char *name;
                size_t size;

                errno = 0;
                entry = readdir(stream);
                if (!entry)
                        return -errno;
                name = entry->d_name;
                size = strlen(name);
                if (strcmp(name, ".") == 0 || strcmp(name, "..") == 0)
                        continue;
                if (is_fuse && read++ % WALK_ADVISE_NAMES == 0)
                        advise(piece, name);
                if (entry->d_type == DT_DIR)
                        r = names_add(&piece->directories, name, size);
                else if (entry->d_type == DT_LNK || entry->d_type == DT_UNKNOWN ||
                         (entry->d_type == DT_REG && event_name_is(name, size)))
                        r = names_add(&piece->names, name, size);
        }
        return r;
}

/* On a thread. The root may be an event file itself: then its row is all there is. */
static int scan_root_file(struct piece *piece) {
        const char *root = piece->walk->root, *name = strrchr(root, '/') + 1;
        struct stat stat_now;

        if (stat(root, &stat_now) < 0)
                return -errno;
        if (!S_ISREG(stat_now.st_mode) || !event_name_is(name, strlen(name)))
                return -ENOTDIR;
        if (names_add(&piece->names, name, strlen(name)) < 0)
                return -ENOMEM;
        piece->root_is_file = true;
        return add_found(piece, piece->names.bytes, &stat_now);
}

/* On a thread. */
static int scan(struct piece *piece) {
        CLEANUP(freep) char *path = full_path(piece->walk, piece->directory, "");
        CLEANUP(close_fdp) int fd = -1;
        struct stat stat_now;
        DIR *stream;
        int r;

        if (!path)
                return -ENOMEM;
        fd = open(path, O_RDONLY | O_DIRECTORY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
        if (fd < 0 && errno == ENOTDIR && !piece->directory->parent)
                return scan_root_file(piece);
        if (fd < 0 || fstat(fd, &stat_now) < 0)
                return -errno;
        if (!piece->directory->parent)
                mount_look(fd, path, &piece->walk->mount);
        if (piece->walk->notify && piece->walk->mount.is_local)
                notify_add(piece->walk->notify, path);
        piece->directory->device = stat_now.st_dev;
        piece->directory->inode = stat_now.st_ino;
        if (is_loop(piece->directory))
                return 0;
        stream = fdopendir(fd);
        if (!stream)
                return -errno;
        steal_fd(&fd);
        r = read_entries(piece, stream);
        closedir(stream);
        return r;
}

static void scan_run(struct work *work) {
        struct piece *piece = list_owner(work, struct piece, work);
        struct names none = { 0 };

        if (atomic_load_explicit(&piece->walk->stop, memory_order_relaxed))
                return;
        piece->error = -scan(piece);
        if (piece->root_is_file)
                piece->left_at = piece->names.size;
        if (piece->error == 0 && !piece->root_is_file && piece->names.count <= WALK_BATCH) {
                look_run(work);
                if (piece->found_count == 0 && !piece->look_error &&
                    piece->left_at == piece->names.size) {
                        piece->left_at = 0;
                        free(piece->names.bytes);
                        piece->names = none;
                }
        }
}

static struct piece *piece_free(struct piece *piece) {
        directory_unref(piece->directory);
        free(piece->names.bytes);
        free(piece->directories.bytes);
        free(piece->found);
        free(piece);
        return NULL;
}

static void release_if_idle(struct walk *walk) {
        void (*on_released)(void *owner) = walk->on_released;
        void *owner = walk->owner;

        if (walk->pieces > 0 || !walk->finished)
                return;
        free(walk->root);
        free(walk);
        on_released(owner);
}

static void finish(struct walk *walk) {
        walk->finished = true;
        atomic_store_explicit(&walk->stop, true, memory_order_relaxed);
}

/* The first failure that ends the walk stays. */
static void walk_ends(struct walk *walk, const struct store_failure *failure) {
        if (walk->failure.class == STORE_OK)
                walk->failure = *failure;
        atomic_store_explicit(&walk->stop, true, memory_order_relaxed);
}

static void walk_ends_errno(struct walk *walk, int error) {
        struct store_failure failure;

        failure_set_errno(&failure, error, walk->root);
        walk_ends(walk, &failure);
}

static void on_scanned(struct work *work);
static void on_looked(struct work *work);

/* Takes the directory, on failure too. */
static int piece_new(struct walk *walk, struct directory *take_directory, bool is_scan,
                     struct piece **ret_piece) {
        struct piece *piece = calloc(1, sizeof(*piece));

        if (!piece) {
                directory_unref(take_directory);
                return -ENOMEM;
        }
        piece->walk = walk;
        piece->directory = take_directory;
        piece->work.run = is_scan ? scan_run : look_run;
        piece->work.done = is_scan ? on_scanned : on_looked;
        piece->work.slow_ns = WALK_SLOW_NS;
        *ret_piece = piece;
        return 0;
}

/* Takes the piece, on failure too. */
static int hand_over(struct walk *walk, struct piece *take_piece) {
        int r = work_pool_submit(walk->pool, &take_piece->work);

        if (r < 0) {
                piece_free(take_piece);
                return r;
        }
        walk->pieces++;
        walk->handed++;
        return 0;
}

static int descend(struct walk *walk, struct directory *parent, const char *name) {
        struct directory *directory;
        struct piece *piece;
        int r;

        if (walk->directories >= WALK_DIRECTORIES_MOST ||
            (parent && parent->depth >= WALK_DEPTH_MOST))
                return -ELOOP;
        directory = directory_new(parent, name);
        if (!directory)
                return -ENOMEM;
        r = piece_new(walk, directory, true, &piece);
        if (r == 0)
                r = hand_over(walk, piece);
        if (r == 0) {
                walk->directories++;
                walk->counts.requests++;
        }
        return r;
}

/* How many of the names that are left one piece of work gets. */
static size_t batch_of(const struct walk *walk, const struct piece *piece, size_t left) {
        if (piece->left_at == 0)
                return WALK_BATCH; /* nothing was looked at so far */
        if (walk->pieces >= WALK_PIECES_ENOUGH)
                return left;
        return left > WALK_BATCH_SLOW ? WALK_BATCH_SLOW : 1;
}

static size_t count_left(const struct piece *piece) {
        size_t count = 0;

        for (size_t at = piece->left_at; at < piece->names.size; count++)
                at += strlen(piece->names.bytes + at) + 1;
        return count;
}

/* Hands the names out that have not been looked at, in batches. */
static int look_at_rest(struct walk *walk, const struct piece *looked) {
        size_t most = batch_of(walk, looked, count_left(looked));
        struct piece *batch = NULL;
        int r = 0;

        for (size_t at = looked->left_at; at < looked->names.size;) {
                const char *name = looked->names.bytes + at;

                at += strlen(name) + 1;
                if (!batch) {
                        looked->directory->refs++;
                        r = piece_new(walk, looked->directory, false, &batch);
                }
                if (r == 0)
                        r = names_add(&batch->names, name, strlen(name));
                if (r == 0 && batch->names.count == most)
                        r = hand_over(walk, steal_pointer(&batch));
                if (r < 0)
                        break;
        }
        if (r == 0 && batch)
                return hand_over(walk, batch);
        if (batch)
                piece_free(batch);
        return r;
}

static void tell_unreadable(struct walk *walk, const struct directory *directory, const char *name,
                            int error) {
        CLEANUP(freep) char *path = full_path(walk, directory, name);
        struct store_failure failure;

        failure_set_errno(&failure, error, path ? path : directory->path);
        walk->callbacks.on_unreadable(walk->userdata, directory->path, directory->path_size,
                                      &failure);
}

static int tell_row(struct walk *walk, const struct piece *piece, const struct found *found) {
        const char *name = piece->names.bytes + found->name_at;
        CLEANUP(freep) char *path = NULL;
        struct store_row row = { .size_bytes = found->size_bytes, .mtime_ns = found->mtime_ns };

        if (asprintf(&path, "%s%s%s", piece->directory->path,
                     piece->directory->path_size ? "/" : "", name) < 0)
                return -ENOMEM;
        row.name = path;
        row.name_size = strlen(path);
        snprintf(row.tag, sizeof(row.tag), "%llx:%llx", (unsigned long long)found->device,
                 (unsigned long long)found->inode);
        walk->callbacks.on_row(walk->userdata, &row);
        return 0;
}

/*
 * What a piece of work has found, as far as the listener still listens: a callback may cancel the
 * walk.
 */
static int tell_found(struct walk *walk, const struct piece *piece) {
        int r = 0;

        for (size_t i = 0; i < piece->found_count && r == 0 && !walk->finished; i++)
                r = tell_row(walk, piece, &piece->found[i]);
        if (piece->look_error && !walk->finished)
                tell_unreadable(walk, piece->directory, piece->names.bytes + piece->look_error_at,
                                piece->look_error);
        names_for_each(name, &piece->directories) {
                if (r == 0 && !walk->finished)
                        r = descend(walk, piece->directory, name);
                if (r == -ELOOP && !walk->finished) {
                        tell_unreadable(walk, piece->directory, name, ELOOP);
                        r = 0;
                }
        }
        return r;
}

/* After each piece. */
static void piece_ended(struct walk *walk, struct piece *take_piece, int r) {
        piece_free(take_piece);
        walk->pieces--;
        if (r < 0 && !walk->finished)
                walk_ends_errno(walk, -r);
        if (walk->pieces == 0 && !walk->finished) {
                finish(walk);
                walk->callbacks.on_done(walk->userdata, &walk->failure, &walk->counts);
        }
        release_if_idle(walk);
}

static void on_scanned(struct work *work) {
        struct piece *piece = list_owner(work, struct piece, work);
        struct walk *walk = piece->walk;
        int r = 0;

        if (walk->finished || walk->failure.class != STORE_OK) {
                piece_ended(walk, piece, 0);
                return;
        }
        if (piece->error == ENOMEM || (piece->error && !piece->directory->parent))
                r = -piece->error; /* of the root: there is no listing */
        else if (piece->error && piece->error != ENOENT && piece->error != ENOTDIR)
                tell_unreadable(walk, piece->directory, "", piece->error);
        if (r == 0)
                r = tell_found(walk, piece);
        if (r == 0 && !walk->finished)
                r = look_at_rest(walk, piece);
        piece_ended(walk, piece, r);
}

static void on_looked(struct work *work) {
        struct piece *piece = list_owner(work, struct piece, work);
        struct walk *walk = piece->walk;
        int r = -piece->error;

        if (!walk->finished && walk->failure.class == STORE_OK && r == 0)
                r = tell_found(walk, piece);
        if (!walk->finished && walk->failure.class == STORE_OK && r == 0)
                r = look_at_rest(walk, piece);
        piece_ended(walk, piece, r);
}

int walk_start(struct work_pool *pool, struct notify *notify, const char *root,
               const struct store_list_callbacks *callbacks, void *userdata,
               void (*on_released)(void *owner), void *owner, struct walk **ret_walk) {
        struct walk *walk = calloc(1, sizeof(*walk));
        int r;

        if (!walk)
                return -ENOMEM;
        walk->pool = pool;
        walk->notify = notify;
        walk->callbacks = *callbacks;
        walk->userdata = userdata;
        walk->on_released = on_released;
        walk->owner = owner;
        walk->root = strdup(root);
        r = walk->root ? descend(walk, NULL, "") : -ENOMEM;
        if (r < 0) {
                free(walk->root);
                free(walk);
                return r;
        }
        *ret_walk = walk;
        return 0;
}

void walk_cancel(struct walk *walk) {
        finish(walk);
        /* A callback may cancel; then the piece that called it is still counted. */
        release_if_idle(walk);
}

void walk_fail(struct walk *walk, const struct store_failure *failure) {
        finish(walk);
        walk->callbacks.on_done(walk->userdata, failure, &walk->counts);
        release_if_idle(walk);
}

const struct mount *walk_mount(const struct walk *walk) {
        return walk->mount.type[0] ? &walk->mount : NULL;
}

uint64_t walk_progress(const struct walk *walk) {
        return walk->handed - walk->pieces;
}
