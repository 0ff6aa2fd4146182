/*
 * A preload layer that notes, in the order in which they happen, all calls by which a program changes files under one
 * folder, and each call that makes something durable. disk.ts reads the notes and rebuilds what a disk may hold at any
 * point of them.
 *
 *   cc -shared -fPIC -O2 -o recorder.so recorder.c -ldl -lpthread
 *   RECORD_FOLDER=/path RECORD_TO=/path/of/notes LD_PRELOAD=recorder.so PROGRAM
 *
 * RECORD_FAIL  path of a file: while it is there, each fsync of a file fails with EIO
 *
 * fsync and fdatasync are only noted, never passed on: no power is cut here, and the system's cache stands for the disk's.
 * A call that changes a file in a way that is not noted is itself noted as such, so that no run passes by looking away.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

enum { CREATED = 1, FOLDER, WRITTEN, CUT_TO, SYNCED, SYNC_FAILED, RENAMED, LINKED, REMOVED, NOT_NOTED };

/* One note: this head, then `first` bytes (a path or what was written), then `second` bytes (a path). Little endian. */
struct head {
  uint32_t kind, first, second, unused;
  uint64_t inode, at;
};

#define MOST_FILES 65536
/* By descriptor: the file's inode, or 0 for one that is not recorded. */
static uint64_t recorded[MOST_FILES];
static char root[PATH_MAX];
static size_t root_length;
static const char *fail_file;
static int notes = -1;
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;

#define REAL(type, name, ...)                                                  \
  static type (*real)(__VA_ARGS__);                                            \
  if (real == NULL) *(void **)&real = dlsym(RTLD_NEXT, name)

__attribute__((constructor)) static void begin(void) {
  const char *folder = getenv("RECORD_FOLDER"), *to = getenv("RECORD_TO");
  fail_file = getenv("RECORD_FAIL");
  if (folder == NULL || to == NULL || realpath(folder, root) == NULL) return;
  root_length = strlen(root);
  int opened = (int)syscall(SYS_openat, AT_FDCWD, to, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
  if (opened < 0) abort();
  /* Out of the way of programs that count on the next number. */
  notes = fcntl(opened, F_DUPFD_CLOEXEC, 512);
  if (notes < 0) notes = opened;
  else syscall(SYS_close, opened);
}

/* What is done between these two is in the notes in the order in which it was done, whichever process did it. */
static void enter(void) {
  pthread_mutex_lock(&mutex);
  while (flock(notes, LOCK_EX) != 0 && errno == EINTR) {}
}

static void leave(void) {
  int saved = errno;
  flock(notes, LOCK_UN);
  pthread_mutex_unlock(&mutex);
  errno = saved;
}

static void note(uint32_t kind, uint64_t inode, uint64_t at, const void *first, size_t first_length, const void *second,
                 size_t second_length) {
  int saved = errno;
  struct head head = {kind, (uint32_t)first_length, (uint32_t)second_length, 0, inode, at};
  struct iovec parts[3] = {{&head, sizeof head}, {(void *)first, first_length}, {(void *)second, second_length}};
  size_t whole = sizeof head + first_length + second_length;
  if (syscall(SYS_writev, notes, parts, 3) != (long)whole) abort();
  errno = saved;
}

static void note_path(uint32_t kind, uint64_t inode, const char *path) {
  note(kind, inode, 0, path, strlen(path), NULL, 0);
}

/* The path below the folder, or NULL for one elsewhere. The last name is not followed if it is a link. */
static const char *inside(int folder, const char *path, char out[PATH_MAX]) {
  if (notes < 0 || path == NULL) return NULL;
  int saved = errno;
  char whole[PATH_MAX], parent[PATH_MAX];
  const char *found = NULL;
  if (path[0] == '/' || folder == AT_FDCWD) {
    if (strlen(path) >= sizeof whole) goto end;
    strcpy(whole, path);
  } else {
    char link[64];
    snprintf(link, sizeof link, "/proc/self/fd/%d", folder);
    ssize_t length = readlink(link, whole, sizeof whole - 1);
    if (length < 0 || (size_t)length + strlen(path) + 2 > sizeof whole) goto end;
    whole[length] = 0;
    strcat(whole, "/");
    strcat(whole, path);
  }
  size_t length = strlen(whole);
  while (length > 1 && whole[length - 1] == '/') whole[--length] = 0;
  char *slash = strrchr(whole, '/');
  const char *name = slash == NULL ? whole : slash + 1;
  if (slash == NULL) {
    if (realpath(".", parent) == NULL) goto end;
  } else if (slash == whole) strcpy(parent, "/");
  else {
    *slash = 0;
    if (realpath(whole, parent) == NULL) goto end;
  }
  if (strlen(parent) + strlen(name) + 2 > PATH_MAX) goto end;
  strcpy(out, strcmp(parent, "/") == 0 ? "" : parent);
  strcat(out, "/");
  strcat(out, name);
  if (strncmp(out, root, root_length) == 0 && out[root_length] == '/') found = out + root_length + 1;
end:
  errno = saved;
  return found;
}

static uint64_t inode_of(int fd) {
  struct stat found;
  return fstat(fd, &found) == 0 ? found.st_ino : 0;
}

/* The C library closes some descriptors without its own `close`, so one may have come to be another file's. */
static int is_inside(int fd) {
  return fd >= 0 && fd < MOST_FILES && recorded[fd] != 0 && recorded[fd] == inode_of(fd);
}

static void not_noted(const char *what) { note_path(NOT_NOTED, 0, what); }

/* ---- opening and closing ---- */

static int opened(int folder, const char *path, int flags, mode_t mode) {
  REAL(int, "openat64", int, const char *, int, ...);
  char out[PATH_MAX];
  int changes = (flags & (O_WRONLY | O_RDWR | O_CREAT | O_TRUNC)) != 0 && (flags & O_PATH) == 0;
  const char *name = changes ? inside(folder, path, out) : NULL;
  if (name == NULL) return real(folder, path, flags, mode);
  enter();
  struct stat before;
  int was_there = fstatat(folder, path, &before, 0) == 0;
  int fd = real(folder, path, flags, mode);
  if (fd >= 0) {
    uint64_t inode = inode_of(fd);
    if (fd >= MOST_FILES || (flags & O_TMPFILE) == O_TMPFILE) not_noted("open");
    else recorded[fd] = inode;
    if (!was_there) note_path(CREATED, inode, name);
    else if ((flags & O_TRUNC) != 0) note(CUT_TO, inode, 0, NULL, 0, NULL, 0);
  }
  leave();
  return fd;
}

#define OPEN(name, declared, folder)                                           \
  int name declared {                                                          \
    mode_t mode = 0;                                                           \
    if ((flags & O_CREAT) != 0 || (flags & O_TMPFILE) == O_TMPFILE) {          \
      va_list rest;                                                            \
      va_start(rest, flags);                                                   \
      mode = va_arg(rest, mode_t);                                             \
      va_end(rest);                                                            \
    }                                                                          \
    return opened(folder, path, flags, mode);                                  \
  }

OPEN(open, (const char *path, int flags, ...), AT_FDCWD)
OPEN(open64, (const char *path, int flags, ...), AT_FDCWD)
OPEN(openat, (int folder, const char *path, int flags, ...), folder)
OPEN(openat64, (int folder, const char *path, int flags, ...), folder)

int creat(const char *path, mode_t mode) { return opened(AT_FDCWD, path, O_CREAT | O_WRONLY | O_TRUNC, mode); }

int close(int fd) {
  REAL(int, "close", int);
  /* libuv and the engine close all they have; none of them means this one. */
  if (fd >= 0 && fd == notes) return 0;
  if (fd >= 0 && fd < MOST_FILES) recorded[fd] = 0;
  return real(fd);
}

/* ---- contents ---- */

static void note_written(int fd, const struct iovec *parts, int count, ssize_t written, off_t at) {
  if (written <= 0) return;
  if (at < 0) at = lseek(fd, 0, SEEK_CUR) - written;
  uint64_t inode = inode_of(fd);
  size_t left = (size_t)written;
  for (int index = 0; index < count && left > 0; index += 1) {
    size_t length = parts[index].iov_len < left ? parts[index].iov_len : left;
    note(WRITTEN, inode, (uint64_t)at, parts[index].iov_base, length, NULL, 0);
    at += (off_t)length;
    left -= length;
  }
}

#define RECORDED_WRITE(fd, call, parts, count, at)                             \
  if (!is_inside(fd)) return call;                                             \
  enter();                                                                     \
  ssize_t written = call;                                                      \
  note_written(fd, parts, count, written, at);                                 \
  leave();                                                                     \
  return written

ssize_t write(int fd, const void *bytes, size_t length) {
  REAL(ssize_t, "write", int, const void *, size_t);
  struct iovec part = {(void *)bytes, length};
  RECORDED_WRITE(fd, real(fd, bytes, length), &part, 1, -1);
}

ssize_t writev(int fd, const struct iovec *parts, int count) {
  REAL(ssize_t, "writev", int, const struct iovec *, int);
  RECORDED_WRITE(fd, real(fd, parts, count), parts, count, -1);
}

ssize_t pwrite(int fd, const void *bytes, size_t length, off_t at) {
  REAL(ssize_t, "pwrite", int, const void *, size_t, off_t);
  struct iovec part = {(void *)bytes, length};
  RECORDED_WRITE(fd, real(fd, bytes, length, at), &part, 1, at);
}

ssize_t pwrite64(int fd, const void *bytes, size_t length, off64_t at) { return pwrite(fd, bytes, length, at); }

ssize_t pwritev(int fd, const struct iovec *parts, int count, off_t at) {
  REAL(ssize_t, "pwritev", int, const struct iovec *, int, off_t);
  RECORDED_WRITE(fd, real(fd, parts, count, at), parts, count, at);
}

ssize_t pwritev64(int fd, const struct iovec *parts, int count, off64_t at) { return pwritev(fd, parts, count, at); }

int ftruncate(int fd, off_t length) {
  REAL(int, "ftruncate", int, off_t);
  if (!is_inside(fd)) return real(fd, length);
  enter();
  int result = real(fd, length);
  if (result == 0) note(CUT_TO, inode_of(fd), (uint64_t)length, NULL, 0, NULL, 0);
  leave();
  return result;
}

int ftruncate64(int fd, off64_t length) { return ftruncate(fd, length); }

int truncate(const char *path, off_t length) {
  REAL(int, "truncate", const char *, off_t);
  char out[PATH_MAX];
  if (inside(AT_FDCWD, path, out) == NULL) return real(path, length);
  enter();
  struct stat found;
  int result = real(path, length);
  if (result == 0 && stat(path, &found) == 0) note(CUT_TO, found.st_ino, (uint64_t)length, NULL, 0, NULL, 0);
  leave();
  return result;
}

int truncate64(const char *path, off64_t length) { return truncate(path, length); }

/* ---- what makes durable ---- */

static int must_fail(void) {
  struct stat found;
  return fail_file != NULL && stat(fail_file, &found) == 0;
}

static int synced(int fd, int (*real)(int)) {
  if (notes < 0) return real(fd);
  char link[64], path[PATH_MAX];
  snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
  ssize_t length = readlink(link, path, sizeof path - 1);
  if (length < 0) return real(fd);
  path[length] = 0;
  /* A file without a name any more ends in " (deleted)", and is of its folder all the same. */
  if (strncmp(path, root, root_length) != 0 || (path[root_length] != '/' && path[root_length] != 0)) return real(fd);
  int result = 0;
  enter();
  if (is_inside(fd) && must_fail()) {
    note(SYNC_FAILED, inode_of(fd), 0, NULL, 0, NULL, 0);
    errno = EIO;
    result = -1;
  } else note(SYNCED, inode_of(fd), 0, NULL, 0, NULL, 0);
  leave();
  return result;
}

int fsync(int fd) {
  REAL(int, "fsync", int);
  return synced(fd, real);
}

int fdatasync(int fd) {
  REAL(int, "fdatasync", int);
  return synced(fd, real);
}

/* ---- names ---- */

static void note_names(uint32_t kind, const char *from, const char *to) {
  if (from != NULL && to != NULL) note(kind, 0, 0, from, strlen(from), to, strlen(to));
  else not_noted("a name that comes or goes from elsewhere");
}

#define RECORDED_NAMES(kind, from_folder, from, to_folder, to, call)           \
  char from_out[PATH_MAX], to_out[PATH_MAX];                                   \
  const char *from_name = inside(from_folder, from, from_out);                 \
  const char *to_name = inside(to_folder, to, to_out);                         \
  if (from_name == NULL && to_name == NULL) return call;                       \
  enter();                                                                     \
  int result = call;                                                           \
  if (result == 0) note_names(kind, from_name, to_name);                       \
  leave();                                                                     \
  return result

int rename(const char *from, const char *to) {
  REAL(int, "rename", const char *, const char *);
  RECORDED_NAMES(RENAMED, AT_FDCWD, from, AT_FDCWD, to, real(from, to));
}

int renameat(int from_folder, const char *from, int to_folder, const char *to) {
  REAL(int, "renameat", int, const char *, int, const char *);
  RECORDED_NAMES(RENAMED, from_folder, from, to_folder, to, real(from_folder, from, to_folder, to));
}

int link(const char *from, const char *to) {
  REAL(int, "link", const char *, const char *);
  RECORDED_NAMES(LINKED, AT_FDCWD, from, AT_FDCWD, to, real(from, to));
}

int linkat(int from_folder, const char *from, int to_folder, const char *to, int flags) {
  REAL(int, "linkat", int, const char *, int, const char *, int);
  RECORDED_NAMES(LINKED, from_folder, from, to_folder, to, real(from_folder, from, to_folder, to, flags));
}

#define RECORDED_REMOVAL(folder, path, call)                                   \
  char out[PATH_MAX];                                                          \
  const char *name = inside(folder, path, out);                                \
  if (name == NULL) return call;                                               \
  enter();                                                                     \
  int result = call;                                                           \
  if (result == 0) note_path(REMOVED, 0, name);                                \
  leave();                                                                     \
  return result

int unlink(const char *path) {
  REAL(int, "unlink", const char *);
  RECORDED_REMOVAL(AT_FDCWD, path, real(path));
}

int unlinkat(int folder, const char *path, int flags) {
  REAL(int, "unlinkat", int, const char *, int);
  RECORDED_REMOVAL(folder, path, real(folder, path, flags));
}

int rmdir(const char *path) {
  REAL(int, "rmdir", const char *);
  RECORDED_REMOVAL(AT_FDCWD, path, real(path));
}

int remove(const char *path) {
  REAL(int, "remove", const char *);
  RECORDED_REMOVAL(AT_FDCWD, path, real(path));
}

int mkdirat(int folder, const char *path, mode_t mode) {
  REAL(int, "mkdirat", int, const char *, mode_t);
  char out[PATH_MAX];
  const char *name = inside(folder, path, out);
  if (name == NULL) return real(folder, path, mode);
  enter();
  struct stat found;
  int result = real(folder, path, mode);
  if (result == 0 && fstatat(folder, path, &found, 0) == 0) note_path(FOLDER, found.st_ino, name);
  leave();
  return result;
}

int mkdir(const char *path, mode_t mode) { return mkdirat(AT_FDCWD, path, mode); }

/* ---- what is not noted ---- */

int symlink(const char *to, const char *path) {
  REAL(int, "symlink", const char *, const char *);
  char out[PATH_MAX];
  if (inside(AT_FDCWD, path, out) != NULL) not_noted("symlink");
  return real(to, path);
}

void *mmap(void *address, size_t length, int protection, int flags, int fd, off_t at) {
  REAL(void *, "mmap", void *, size_t, int, int, int, off_t);
  if (is_inside(fd) && (flags & MAP_SHARED) != 0 && (protection & PROT_WRITE) != 0) not_noted("mmap");
  return real(address, length, protection, flags, fd, at);
}

void *mmap64(void *address, size_t length, int protection, int flags, int fd, off64_t at) {
  return mmap(address, length, protection, flags, fd, at);
}

/* Copies within the system are refused as on a file system that has none: Node then reads and writes, which is noted. */
ssize_t sendfile(int to, int from, off_t *at, size_t length) {
  REAL(ssize_t, "sendfile", int, int, off_t *, size_t);
  if (!is_inside(to)) return real(to, from, at, length);
  errno = EINVAL;
  return -1;
}

ssize_t sendfile64(int to, int from, off64_t *at, size_t length) { return sendfile(to, from, at, length); }

ssize_t copy_file_range(int from, off64_t *from_at, int to, off64_t *to_at, size_t length, unsigned flags) {
  REAL(ssize_t, "copy_file_range", int, off64_t *, int, off64_t *, size_t, unsigned);
  if (!is_inside(to)) return real(from, from_at, to, to_at, length, flags);
  errno = ENOSYS;
  return -1;
}

/* Node asks the system for this one by its number. */
long syscall(long number, ...) {
  REAL(long, "syscall", long, ...);
  va_list more;
  va_start(more, number);
  long a[6];
  for (int index = 0; index < 6; index += 1) a[index] = va_arg(more, long);
  va_end(more);
  if (number != SYS_copy_file_range || !is_inside((int)a[2])) return real(number, a[0], a[1], a[2], a[3], a[4], a[5]);
  errno = ENOSYS;
  return -1;
}

int fallocate(int fd, int mode, off_t at, off_t length) {
  REAL(int, "fallocate", int, int, off_t, off_t);
  if (is_inside(fd)) not_noted("fallocate");
  return real(fd, mode, at, length);
}

int posix_fallocate(int fd, off_t at, off_t length) {
  REAL(int, "posix_fallocate", int, off_t, off_t);
  if (is_inside(fd)) not_noted("posix_fallocate");
  return real(fd, at, length);
}
