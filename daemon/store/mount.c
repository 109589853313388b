/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Types by the magic of statfs(2), as linux/magic.h and the file systems' own sources have them. Of
 * FUSE the kernel knows more: the type in mountinfo, and the limit of background requests, among
 * which are the reads, below /sys/fs/fuse/connections.
 */
#include "daemon/store/mount.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <sys/sysmacros.h>

#include "common/base.h"

#define FUSE_MAGIC 0x65735546u
#define LINE_BYTES 8192

static const struct {
        uint32_t magic;
        const char *type;
} remote[] = {
        { FUSE_MAGIC, "fuse" },    { 0x00006969u, "nfs" },    { 0xFF534D42u, "cifs" },
        { 0xFE534D42u, "smb3" },   { 0x0000517Bu, "smb" },    { 0x0BD00BD0u, "lustre" },
        { 0x00C36400u, "ceph" },   { 0x01021997u, "9p" },     { 0x47504653u, "gpfs" },
        { 0x19830326u, "beegfs" }, { 0x5346414Fu, "afs" },    { 0x7461636Fu, "ocfs2" },
        { 0x01161970u, "gfs2" },   { 0x786F4256u, "vboxsf" },
};

/* The next word of a line, with \040 and the like decoded. False: there is none, or no room. */
static bool next_word(const char **line, char *ret_word, size_t size) {
        size_t used = 0;

        while (**line && !strchr(" \n", **line) && used + 1 < size) {
                if (**line == '\\' && strspn(*line + 1, "01234567") >= 3) {
                        char digits[4] = { (*line)[1], (*line)[2], (*line)[3], '\0' };

                        ret_word[used++] = (char)strtoul(digits, NULL, 8);
                        *line += 4;
                } else {
                        ret_word[used++] = *(*line)++;
                }
        }
        ret_word[used] = '\0';
        if (**line && !strchr(" \n", **line))
                return false;
        *line += **line == ' ';
        return used > 0;
}

/* What the path is called below the mount point, with a slash in front; "" for that itself. */
static const char *below(const char *path, const char *point) {
        size_t size = strcmp(point, "/") == 0 ? 0 : strlen(point);

        if (strncmp(path, point, size) != 0 || (path[size] != '/' && path[size] != '\0'))
                return NULL;
        return path[size] == '/' && path[size + 1] == '\0' ? "" : path + size;
}

/* Programs that mount buckets, and whether the source of the mount is the bucket's name. */
static void set_native(struct mount *mount, const char *source, const char *rest) {
        static const struct {
                const char *type, *scheme;
                bool has_bucket;
        } programs[] = {
                { "fuse.gcsfuse", "gs", true },    { "fuse.s3fs", "s3", false },
                { "fuse.goofys", "s3", true },     { "fuse.geesefs", "s3", true },
                { "fuse.mount-s3", "s3", false },  { "fuse.mountpoint-s3", "s3", false },
                { "fuse.blobfuse2", "az", false }, { "fuse.blobfuse", "az", false },
        };

        for (size_t i = 0; i < ARRAY_SIZE(programs); i++) {
                int size;

                if (strcmp(mount->type, programs[i].type) != 0)
                        continue;
                size = snprintf(mount->native, sizeof(mount->native), "%s://%s%s",
                                programs[i].scheme, programs[i].has_bucket ? source : "BUCKET",
                                rest ? rest : "");
                if (size >= (int)sizeof(mount->native))
                        mount->native[0] = '\0';
                return;
        }
}

bool mount_parse_line(const char *line, dev_t device, const char *path, struct mount *ret_mount) {
        char word[4096], point[4096];
        unsigned major_number, minor_number;
        int end = 0;

        if (sscanf(line, "%*u %*u %u:%u %n", &major_number, &minor_number, &end) != 2 || end == 0 ||
            makedev(major_number, minor_number) != device)
                return false;
        line += end;
        if (!next_word(&line, word, sizeof(word)) || !next_word(&line, point, sizeof(point)))
                return false;
        do { /* options, and fields that may be there, up to a dash */
                if (!next_word(&line, word, sizeof(word)))
                        return false;
        } while (strcmp(word, "-") != 0);
        if (!next_word(&line, word, sizeof(word)) || strlen(word) >= sizeof(ret_mount->type))
                return false;
        memcpy(ret_mount->type, word, strlen(word) + 1);
        if (next_word(&line, word, sizeof(word)))
                set_native(ret_mount, word, below(path, point));
        return true;
}

static void look_at_mountinfo(dev_t device, const char *path, struct mount *mount) {
        FILE *file = fopen("/proc/self/mountinfo", "re");
        char line[LINE_BYTES];

        while (file && fgets(line, sizeof(line), file)) {
                if (mount_parse_line(line, device, path, mount))
                        break;
        }
        if (file)
                fclose(file);
}

/* Only root and who mounted it may look. */
static unsigned look_at_background(dev_t device) {
        unsigned most = 0;
        char path[80];
        FILE *file;

        snprintf(path, sizeof(path), "/sys/fs/fuse/connections/%u/max_background", minor(device));
        file = fopen(path, "re");
        if (file && fscanf(file, "%u", &most) != 1)
                most = 0;
        if (file)
                fclose(file);
        return most;
}

void mount_look(int fd, const char *path, struct mount *ret_mount) {
        struct mount mount = { .type = "local", .is_local = true };
        struct statfs statfs_now;
        struct stat stat_now;

        *ret_mount = mount;
        if (fstatfs(fd, &statfs_now) < 0 || fstat(fd, &stat_now) < 0)
                return;
        for (size_t i = 0; i < ARRAY_SIZE(remote); i++) {
                if ((uint32_t)statfs_now.f_type != remote[i].magic)
                        continue;
                ret_mount->is_local = false;
                snprintf(ret_mount->type, sizeof(ret_mount->type), "%s", remote[i].type);
        }
        if ((uint32_t)statfs_now.f_type != FUSE_MAGIC)
                return;
        look_at_mountinfo(stat_now.st_dev, path, ret_mount);
        ret_mount->max_background = look_at_background(stat_now.st_dev);
}
