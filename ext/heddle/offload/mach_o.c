#include "offload/mach_o.h"

#include <string.h>

enum {
    MAGIC_64 = 0xfeedfacf,
    COMMAND_SYMBOLS = 0x2,
    COMMAND_DYNAMIC_SYMBOLS = 0xb,
    COMMAND_SEGMENT_64 = 0x19,
    SECTION_TYPE = 0xff,
    SECTION_POINTERS = 0x6,
    SECTION_LAZY_POINTERS = 0x7,
    SEGMENT_READ_ONLY = 0x10,
};

static const uint32_t IN_SHARED_CACHE = UINT32_C(1) << 31;
static const uint32_t NO_SYMBOL = UINT32_C(3) << 30; /* the entry is for a local or absolute symbol */

typedef struct {
    uint32_t magic, cpu, cpu_kind, file_type, command_count, command_bytes, flags, reserved;
} image_header;

typedef struct {
    uint32_t kind, size;
} command;

typedef struct {
    command command;
    char name[16];
    uint64_t address, size, file_offset, file_size;
    uint32_t most_protection, protection, section_count, flags;
} segment;

typedef struct {
    char name[16], segment[16];
    uint64_t address, size;
    uint32_t file_offset, alignment, relocations, relocation_count, flags, first_indirect, stub_size, reserved;
} section;

typedef struct {
    command command;
    uint32_t symbols, symbol_count, names, names_size; /* as offsets in the file */
} symbols_command;

typedef struct {
    command command;
    uint32_t ranges[6], tables[6], indirect, indirect_count, relocations[4];
} dynamic_symbols_command;

typedef struct {
    uint32_t name;
    uint8_t kind, section;
    uint16_t description;
    uint64_t value;
} symbol;

_Static_assert(sizeof(image_header) == 32 && sizeof(segment) == 72 && sizeof(section) == 80 && sizeof(symbol) == 16 &&
                   sizeof(symbols_command) == 24 && sizeof(dynamic_symbols_command) == 80,
               "as they are in the file");

/* Values that are needed before sections can be read. */
typedef struct {
    uintptr_t slide; /* the difference between the addresses where it was loaded and for which it was linked */
    const segment *link_edit;
    const symbols_command *symbols;
    const dynamic_symbols_command *dynamic;
} image;

typedef bool visit_command(const command *command, void *data);

static void each_command(const void *header, visit_command *visit, void *data)
{
    const image_header *head = header;
    const char *at = (const char *)(head + 1), *end = at + head->command_bytes;
    for (uint32_t i = 0; i < head->command_count && at + sizeof(command) <= end; i++) {
        const command *next = (const command *)at;
        if (next->size < sizeof(command) || next->size > (size_t)(end - at) || !visit(next, data))
            return;
        at += next->size;
    }
}

static bool has_name(const segment *segment, const char *name)
{
    return strncmp(segment->name, name, sizeof(segment->name)) == 0;
}

typedef struct {
    image image;
    const void *header;
} reading;

static bool read_command(const command *next, void *data)
{
    reading *self = data;
    const segment *part = (const segment *)next;
    if (next->kind == COMMAND_SYMBOLS)
        self->image.symbols = (const symbols_command *)next;
    else if (next->kind == COMMAND_DYNAMIC_SYMBOLS)
        self->image.dynamic = (const dynamic_symbols_command *)next;
    else if (next->kind == COMMAND_SEGMENT_64 && has_name(part, "__TEXT"))
        self->image.slide = (uintptr_t)self->header - (uintptr_t)part->address;
    else if (next->kind == COMMAND_SEGMENT_64 && has_name(part, "__LINKEDIT"))
        self->image.link_edit = part;
    return true;
}

static image read_image(const void *header)
{
    reading self = {.header = header};
    each_command(header, read_command, &self);
    return self.image;
}

bool heddle_mach_o_readable(const void *header)
{
    const image_header *head = header;
    return head->magic == MAGIC_64 && !(head->flags & IN_SHARED_CACHE);
}

/* -- its contents -------------------------------------------------------------------------------------------------- */

typedef struct {
    uintptr_t slide, address;
    bool found;
} search;

static bool look_in_segment(const command *next, void *data)
{
    search *self = data;
    const segment *part = (const segment *)next;
    if (next->kind == COMMAND_SEGMENT_64 && part->protection) /* not the empty page at 0 */
        self->found = self->address - self->slide - (uintptr_t)part->address < part->size;
    return !self->found;
}

bool heddle_mach_o_contains(const void *header, const void *address)
{
    search self = {.slide = read_image(header).slide, .address = (uintptr_t)address};
    each_command(header, look_in_segment, &self);
    return self.found;
}

/* -- its imports --------------------------------------------------------------------------------------------------- */

typedef struct {
    image image;
    const symbol *symbols;
    const char *names;
    const uint32_t *indirect;
    bool (*visit)(const heddle_mach_o_import *import, void *data);
    void *data;
} visitor;

/* NULL: unknown. */
static const char *name_of(const visitor *self, uint64_t indirect)
{
    if (indirect >= self->image.dynamic->indirect_count)
        return NULL;
    uint32_t index = self->indirect[indirect];
    if (index & NO_SYMBOL || index >= self->image.symbols->symbol_count)
        return NULL;
    uint32_t name = self->symbols[index].name;
    if (name >= self->image.symbols->names_size || self->names[name] != '_')
        return NULL;
    return self->names + name + 1;
}

static bool visit_section(const visitor *self, const section *pointers, bool read_only)
{
    uint32_t kind = pointers->flags & SECTION_TYPE;
    if (kind != SECTION_POINTERS && kind != SECTION_LAZY_POINTERS)
        return true;
    uintptr_t *slots = (uintptr_t *)(self->image.slide + (uintptr_t)pointers->address);
    for (uint64_t i = 0; i < pointers->size / sizeof(*slots); i++) {
        heddle_mach_o_import import = {.name = name_of(self, pointers->first_indirect + i),
                                       .slot = &slots[i],
                                       .lazy = kind == SECTION_LAZY_POINTERS,
                                       .read_only = read_only};
        if (import.name && !self->visit(&import, self->data))
            return false;
    }
    return true;
}

static bool visit_segment(const command *next, void *data)
{
    const segment *part = (const segment *)next;
    if (next->kind != COMMAND_SEGMENT_64)
        return true;
    bool read_only = (part->flags & SEGMENT_READ_ONLY) || has_name(part, "__DATA_CONST");
    const section *sections = (const section *)(part + 1);
    for (uint32_t i = 0; i < part->section_count; i++) {
        if (!visit_section(data, &sections[i], read_only))
            return false;
    }
    return true;
}

/* The variant $NOCANCEL is for the system's own calls, which must not be cancellation points. */
bool heddle_mach_o_named(const heddle_mach_o_import *import, const char *name)
{
    size_t length = strlen(name);
    if (strncmp(import->name, name, length) != 0)
        return false;
    const char *variant = import->name + length;
    return *variant == 0 || (*variant == '$' && strcmp(variant, "$NOCANCEL") != 0);
}

void heddle_mach_o_imports(const void *header, bool (*visit)(const heddle_mach_o_import *import, void *data),
                           void *data)
{
    image image = read_image(header);
    if (!image.link_edit || !image.symbols || !image.dynamic)
        return;
    const char *file = (const char *)(image.slide + (uintptr_t)image.link_edit->address - image.link_edit->file_offset);
    visitor self = {.image = image,
                    .symbols = (const symbol *)(file + image.symbols->symbols),
                    .names = file + image.symbols->names,
                    .indirect = (const uint32_t *)(file + image.dynamic->indirect),
                    .visit = visit,
                    .data = data};
    each_command(header, visit_segment, &self);
}
