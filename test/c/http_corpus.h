#ifndef HEDDLE_TEST_HTTP_CORPUS_H
#define HEDDLE_TEST_HTTP_CORPUS_H

/* What the tests of the parsers share: they check what the fuzz targets check, for inputs that are written here. */

#include "check.h"

/* The promises of the fuzz target hold for these bytes, with each choice that it knows: CHECK_CHOICES of them. */
static inline void check_promises(const char *bytes, size_t size)
{
    char *input = malloc(size + 1);
    memcpy(input + 1, bytes, size);
    for (int choice = 0; choice < CHECK_CHOICES; choice++) {
        input[0] = (char)choice;
        LLVMFuzzerTestOneInput((uint8_t *)input, size + 1);
    }
    free(input);
}

/* They hold for all of its corpus. `folder` is in test/fuzz/corpus. */
static inline int check_corpus(const char *folder)
{
    char path[1024];
    const char *slash = strrchr(__FILE__, '/');
    int length = snprintf(path, sizeof(path), "%.*s/../fuzz/corpus/%s", (int)(slash - __FILE__), __FILE__, folder);
    DIR *entries = opendir(path);
    CHECK(entries);
    int count = 0;
    for (struct dirent *entry; (entry = readdir(entries));) {
        if (entry->d_name[0] == '.')
            continue;
        snprintf(path + length, sizeof(path) - (size_t)length, "/%s", entry->d_name);
        FILE *file = fopen(path, "rb");
        CHECK(file);
        char bytes[4096];
        size_t size = fread(bytes, 1, sizeof(bytes), file);
        fclose(file);
        CHECK(size > 0);
        check_promises(bytes + 1, size - 1);
        count++;
    }
    closedir(entries);
    return count;
}

#endif
