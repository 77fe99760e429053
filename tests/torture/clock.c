/* Preloaded into a program: its clock is ahead by the seconds that the first eight octets of the file TORTURE_CLOCK hold,
 * or behind; clocks that tell no time of day go on, and so do all waits.
 *
 * libfaketime changes waits as well: with 0.9.10, Python's time.sleep fails and MiniDNS's sockets stand still. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

static int (*real_clock_gettime)(clockid_t, struct timespec *);
static const volatile int64_t none = 0, *ahead = &none;

__attribute__((constructor)) static void begin(void)
{
    const char *path = getenv("TORTURE_CLOCK");
    int file = path ? open(path, O_RDONLY | O_CLOEXEC) : -1;
    void *found = file < 0 ? MAP_FAILED : mmap(NULL, sizeof *ahead, PROT_READ, MAP_SHARED, file, 0);

    if (found != MAP_FAILED)
        ahead = found;
    if (file >= 0)
        close(file);
    real_clock_gettime = dlsym(RTLD_NEXT, "clock_gettime");
}

int clock_gettime(clockid_t clock, struct timespec *now)
{
    int failed;

    if (!real_clock_gettime)
        begin();
    failed = real_clock_gettime(clock, now);
    if (!failed && (clock == CLOCK_REALTIME || clock == CLOCK_REALTIME_COARSE))
        now->tv_sec += *ahead;
    return failed;
}

int gettimeofday(struct timeval *restrict now, void *restrict zone)
{
    struct timespec found;

    (void) zone;
    if (clock_gettime(CLOCK_REALTIME, &found))
        return -1;
    now->tv_sec = found.tv_sec;
    now->tv_usec = found.tv_nsec / 1000;
    return 0;
}

time_t time(time_t *told)
{
    struct timespec found;

    if (clock_gettime(CLOCK_REALTIME, &found))
        return (time_t) -1;
    if (told)
        *told = found.tv_sec;
    return found.tv_sec;
}
