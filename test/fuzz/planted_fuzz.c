/* sources: */

/* Breaks for some inputs, but for no seed: a fuzzer that does not find them finds nothing. */

#include "fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    for (size_t i = 0; i + 5 <= size; i++) {
        if (data[i] == 'b' && data[i + 1] == 'u' && data[i + 2] == 'g') {
            if (data[i + 3] != '!' || data[i + 4] < 0x80)
                continue;
            char *copy = fuzz_copy((const char *)data + i, 4);
            PROMISE(memcmp(copy, data + i, size - i) == 0); /* five bytes at least */
            free(copy);
        }
    }
    return 0;
}
