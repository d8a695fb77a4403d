#include "http/field_names.h"

#include "http/text.h"
#include "selector/assert.h"

#define KNOWN_NAME(id, name) [HEDDLE_FIELD_##id] = {name, sizeof(name) - 1},
const heddle_known_name heddle_known_names[HEDDLE_FIELD_COUNT] = {HEDDLE_FIELDS(KNOWN_NAME)};

uint8_t heddle_field_slots[1 << HEDDLE_FIELD_SLOT_BITS];

/* runs when the extension is loaded */
__attribute__((constructor)) static void fill_slots(void)
{
    for (unsigned id = 0; id < HEDDLE_FIELD_COUNT; id++) {
        const heddle_known_name *known = &heddle_known_names[id];
        if (known->size == 0)
            continue;
        uint8_t *slot = &heddle_field_slots[heddle_field_slot(known->name, known->size)];
        HEDDLE_ASSERT(*slot == 0 && "two names have the same slot: run bin/support/field_factor.rb");
        *slot = (uint8_t)id;
    }
}

heddle_field_id heddle_field_find(const char *name, size_t size)
{
    if (size < HEDDLE_FIELD_SHORTEST || size >= HEDDLE_KNOWN_NAME_ROOM)
        return HEDDLE_FIELD_OTHER;
    unsigned id = heddle_field_candidate(name, size);
    return heddle_is_word(name, size, heddle_known_names[id].name) ? (heddle_field_id)id : HEDDLE_FIELD_OTHER;
}

const char *heddle_field_name(heddle_field_id id)
{
    return heddle_known_names[id].name;
}
