/*
 * Stands in for libFuzzer where there is no clang: runs the corpus, then inputs that are mutations of it, for some
 * seconds, and keeps what reaches code that nothing before has reached. gcc tells through __sanitizer_cov_trace_pc.
 *
 * driver SECONDS SEED CURRENT CORPUS [keep]: the input that is being tried is in the file CURRENT, so that it is there
 * after a crash. With `keep`, the shortest inputs that together reach all that is new become files of the corpus, and
 * files that were kept before and reach nothing more are removed from it.
 */

#include <dirent.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum {
    MAP_BITS = 16,
    LONGEST = 1024,
    POOL = 8192,
};

typedef struct {
    uint32_t size;
    uint8_t bytes[LONGEST];
} input;

static uint8_t hits[1 << MAP_BITS], seen[1 << MAP_BITS];
static uintptr_t before;
static input *pool[POOL];
static unsigned pool_count;
static input *current; /* in the file */
static uint64_t random_state;
static int edges_alone; /* however often each is passed */

/* Called at each branch of what is tested; two in a row make an edge. */
void __sanitizer_cov_trace_pc(void)
{
    uintptr_t here = (uintptr_t)__builtin_return_address(0) - (uintptr_t)LLVMFuzzerTestOneInput;
    uint8_t *count = &hits[((here * UINT64_C(0x9E3779B97F4A7C15) >> 40) ^ before) & ((1 << MAP_BITS) - 1)];
    *count += *count < 255;
    before = (here * UINT64_C(0x9E3779B97F4A7C15) >> 41) & ((1 << MAP_BITS) - 1);
}

static uint32_t random_below(uint32_t limit)
{
    random_state = random_state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return limit ? (uint32_t)(random_state >> 33) % limit : 0;
}

/* Once, twice, a few times and many times are different things to reach, but not worth a file. */
static uint8_t bucket(uint8_t count)
{
    return edges_alone ? 1 : count < 4 ? (uint8_t)(1 << count >> 1) : count < 8 ? 8 : count < 32 ? 16 : count < 128 ? 32 : 64;
}

/* Whether the run has reached something new. */
static int note_hits(void)
{
    int fresh = 0;
    for (size_t i = 0; i < sizeof(hits); i += sizeof(uint64_t)) {
        uint64_t eight;
        memcpy(&eight, hits + i, sizeof(eight));
        if (!eight)
            continue;
        for (size_t j = i; j < i + sizeof(uint64_t); j++) {
            uint8_t bit = bucket(hits[j]);
            fresh |= (seen[j] & bit) != bit;
            seen[j] |= bit;
        }
    }
    memset(hits, 0, sizeof(hits));
    before = 0;
    return fresh;
}

static void keep(void)
{
    if (pool_count == POOL)
        return;
    pool[pool_count] = malloc(sizeof(input));
    if (!pool[pool_count])
        abort();
    *pool[pool_count++] = *current;
}

static void run(int always_keep)
{
    LLVMFuzzerTestOneInput(current->bytes, current->size);
    if (note_hits() || always_keep)
        keep();
}

static void replace(uint32_t at, uint32_t old_size, const void *bytes, uint32_t size)
{
    if (current->size - old_size + size > LONGEST)
        return;
    uint8_t copy[LONGEST];
    memcpy(copy, bytes, size);
    memmove(current->bytes + at + size, current->bytes + at + old_size, current->size - at - old_size);
    memcpy(current->bytes + at, copy, size);
    current->size += size - old_size;
}

static const char *const words[] = {
    "\r\n", "\r", "\n", "\r\n\r\n", " ", "\t", ":", ",", ";", "#", "?", "*", "[", "]", "::", "%", "%41", "_", "\r\n ",
    "0", "9",
    "HTTP/1.1", "HTTP/1.0", "GET ", "OPTIONS ", "CONNECT ", "http://", "https://", "Host:", "Content-Length:",
    "Transfer-Encoding:", "chunked", "gzip", "Connection:", "close", "keep-alive", "upgrade", "Upgrade:", "Expect:",
    "100-continue", "18446744073709551616", "9223372036854775807", "\x7F", "\xFF", "=", "\x01", " 200 ",
    " 304 ", "fffffffffffffff",
};

static void mutate(void)
{
    uint32_t at = random_below(current->size + 1), left = current->size - at;
    uint32_t some = random_below(left < 16 ? left + 1 : 17);
    uint8_t byte = (uint8_t)random_below(256);
    const input *other = pool[random_below(pool_count)];
    switch (random_below(8)) {
    case 0:
        replace(at, left > 0, &byte, 1);
        break;
    case 1:
        replace(at, 0, &byte, 1);
        break;
    case 2:
        replace(at, some, "", 0);
        break;
    case 3:
        replace(at, 0, current->bytes + at, some);
        break;
    case 4: { /* one bit */
        if (left == 0)
            break;
        byte = (uint8_t)(current->bytes[at] ^ 1 << random_below(8));
        replace(at, 1, &byte, 1);
        break;
    }
    case 5: { /* the end of another */
        uint32_t from = random_below(other->size + 1);
        replace(at, left, other->bytes + from, other->size - from);
        break;
    }
    default: {
        const char *word = words[random_below(sizeof(words) / sizeof(*words))];
        replace(at, random_below(2) ? some : 0, word, (uint32_t)strlen(word));
    }
    }
}

static void read_corpus(const char *folder)
{
    DIR *entries = opendir(folder);
    if (!entries) {
        perror(folder);
        exit(2);
    }
    struct dirent *entry;
    while ((entry = readdir(entries))) {
        char path[4096];
        snprintf(path, sizeof(path), "%s/%s", folder, entry->d_name);
        FILE *file = entry->d_name[0] == '.' ? NULL : fopen(path, "rb");
        if (!file)
            continue;
        current->size = (uint32_t)fread(current->bytes, 1, LONGEST, file);
        fclose(file);
        run(1);
    }
    closedir(entries);
}

static int compare_sizes(const void *one, const void *other)
{
    uint32_t left = (*(const input *const *)one)->size, right = (*(const input *const *)other)->size;
    return left < right ? -1 : left > right;
}

static void name_input(char path[4096], const char *folder)
{
    uint64_t name = UINT64_C(14695981039346656037); /* FNV-1a */
    for (uint32_t i = 0; i < current->size; i++)
        name = (name ^ current->bytes[i]) * UINT64_C(1099511628211);
    snprintf(path, 4096, "%s/%016llx", folder, (unsigned long long)name);
}

static void write_input(const char *folder)
{
    char path[4096];
    name_input(path, folder);
    FILE *file = fopen(path, "wb");
    if (!file || fwrite(current->bytes, 1, current->size, file) != current->size || fclose(file) != 0) {
        perror(path);
        exit(2);
    }
}

/* Files of people have other names than kept ones, and stay. */
static int is_kept(const char *folder)
{
    char path[4096];
    name_input(path, folder);
    return access(path, F_OK) == 0;
}

static int reaches_more(const input *one)
{
    *current = *one;
    LLVMFuzzerTestOneInput(current->bytes, current->size);
    return note_hits();
}

static void remove_input(const char *folder)
{
    char path[4096];
    name_input(path, folder);
    unlink(path);
}

static void keep_shortest(const char *folder, unsigned corpus)
{
    unsigned kept = 0, removed = 0;
    edges_alone = 1;
    memset(seen, 0, sizeof(seen));
    for (unsigned i = 0; i < corpus; i++) {
        *current = *pool[i];
        if (!is_kept(folder))
            reaches_more(pool[i]);
    }
    qsort(pool, pool_count, sizeof(*pool), compare_sizes);
    for (unsigned i = 0; i < pool_count; i++) {
        int more = reaches_more(pool[i]), had = is_kept(folder);
        if (more && !had)
            write_input(folder);
        if (!more && had)
            remove_input(folder);
        kept += more && !had;
        removed += !more && had;
    }
    printf("%u inputs kept, %u removed\n", kept, removed);
}

static double now(void)
{
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec + (double)time.tv_nsec / 1e9;
}

int main(int argc, char **argv)
{
    if (argc != 5 && argc != 6) {
        fprintf(stderr, "usage: %s SECONDS SEED CURRENT CORPUS [keep]\n", argv[0]);
        return 2;
    }
    double end = now() + atof(argv[1]);
    random_state = strtoull(argv[2], NULL, 10);
    int file = open(argv[3], O_RDWR | O_CREAT | O_TRUNC, 0644);
    if (file < 0 || ftruncate(file, sizeof(input)) < 0) {
        perror(argv[3]);
        return 2;
    }
    current = mmap(NULL, sizeof(input), PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    if (current == MAP_FAILED)
        return 2;
    read_corpus(argv[4]);
    unsigned runs = pool_count, corpus = pool_count;
    if (!corpus) {
        fprintf(stderr, "%s: no corpus\n", argv[4]);
        return 2;
    }
    while (now() < end) {
        *current = *pool[random_below(pool_count)];
        for (uint32_t i = random_below(4); i < 4; i++)
            mutate();
        run(0);
        runs++;
    }
    printf("%u inputs, %u of them reached something new\n", runs - corpus, pool_count - corpus);
    if (argc == 6)
        keep_shortest(argv[4], corpus);
    return unlink(argv[3]);
}
