#include "http/websocket/frame_head.h"

enum {
    FINAL = 0x80,
    COMPRESSED = 0x40,
    MASKED = 0x80,
};

bool heddle_websocket_code_is_valid(unsigned code)
{
    if (code >= 3000 && code <= 4999)
        return true;
    return code >= 1000 && code <= 1014 && code != 1004 && code != HEDDLE_WEBSOCKET_NO_STATUS &&
           code != HEDDLE_WEBSOCKET_ABNORMAL;
}

static size_t write_number(char *bytes, uint64_t number, unsigned size)
{
    for (unsigned i = 0; i < size; i++)
        bytes[i] = (char)(uint8_t)(number >> 8 * (size - 1 - i));
    return size;
}

size_t heddle_websocket_write_head(char *bytes, heddle_websocket_opcode opcode, bool compressed, uint64_t size,
                                   const uint8_t *mask)
{
    size_t used = 2;
    uint8_t masked = mask ? MASKED : 0;
    bytes[0] = (char)(uint8_t)(FINAL | (compressed ? COMPRESSED : 0) | opcode);
    if (size < 126) {
        bytes[1] = (char)(uint8_t)(masked | size);
    } else if (size <= UINT16_MAX) {
        bytes[1] = (char)(uint8_t)(masked | 126);
        used += write_number(bytes + used, size, 2);
    } else {
        bytes[1] = (char)(uint8_t)(masked | 127);
        used += write_number(bytes + used, size, 8);
    }
    if (mask) {
        memcpy(bytes + used, mask, 4);
        used += 4;
    }
    return used;
}

void heddle_websocket_mask(char *bytes, size_t size, const uint8_t *mask, uint64_t offset)
{
    uint8_t turned[8];
    for (unsigned i = 0; i < 8; i++)
        turned[i] = mask[(offset + i) & 3];
    uint64_t key;
    memcpy(&key, turned, 8);
    size_t i = 0;
    for (; size - i >= 8; i += 8) { /* compilers turn this form into vector instructions */
        uint64_t word;
        memcpy(&word, bytes + i, 8);
        word ^= key;
        memcpy(bytes + i, &word, 8);
    }
    for (; i < size; i++)
        bytes[i] = (char)((uint8_t)bytes[i] ^ turned[i & 7]);
}

size_t heddle_websocket_write_close(char *bytes, unsigned code, const char *reason, size_t reason_size)
{
    if (code == HEDDLE_WEBSOCKET_NO_STATUS)
        return 0;
    size_t used = write_number(bytes, code, 2);
    if (reason_size > HEDDLE_WEBSOCKET_REASON) {
        reason_size = HEDDLE_WEBSOCKET_REASON;
        while (reason_size && ((uint8_t)reason[reason_size] & 0xc0) == 0x80)
            reason_size--;
    }
    if (reason_size)
        memcpy(bytes + used, reason, reason_size);
    return used + reason_size;
}
