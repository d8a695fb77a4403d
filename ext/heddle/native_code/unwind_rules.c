#include "native_code/unwind_rules.h"

#if defined(__linux__) && (defined(__x86_64__) || defined(__aarch64__))

enum {
    STATES = 4, /* the maximum depth of nested DW_CFA_remember_state */
};

/* -- reading ------------------------------------------------------------------------------------------------------- */

uint64_t heddle_unwind_bytes(heddle_unwind_reader *from, size_t size)
{
    uint64_t value = 0;
    if ((size_t)(from->end - from->at) < size) {
        from->failed = true;
        from->at = from->end;
        return 0;
    }
    memcpy(&value, from->at, size); /* both architectures are little-endian */
    from->at += size;
    return value;
}

uint64_t heddle_unwind_unsigned(heddle_unwind_reader *from)
{
    uint64_t value = 0;
    for (unsigned shift = 0; shift < 64; shift += 7) {
        uint64_t byte = heddle_unwind_bytes(from, 1);
        value |= (byte & 0x7f) << shift;
        if (!(byte & 0x80))
            return value;
    }
    from->failed = true;
    return 0;
}

int64_t heddle_unwind_signed(heddle_unwind_reader *from)
{
    uint64_t value = 0;
    for (unsigned shift = 0; shift < 64;) {
        uint64_t byte = heddle_unwind_bytes(from, 1);
        value |= (byte & 0x7f) << shift;
        shift += 7;
        if (!(byte & 0x80))
            return (int64_t)(shift < 64 && byte & 0x40 ? value | ~UINT64_C(0) << shift : value);
    }
    from->failed = true;
    return 0;
}

/*
 * Reads a pointer with a DW_EH_PE_* encoding. The low four bits of the encoding are the pointer's format, the next
 * three bits the base to which the pointer is relative.
 */
static uintptr_t read_pointer(heddle_unwind_reader *from, uint8_t encoding)
{
    uintptr_t place = (uintptr_t)from->at, value;
    switch (encoding & 0x0f) {
    case 0x00: case 0x04: case 0x0c: value = (uintptr_t)heddle_unwind_bytes(from, 8); break;
    case 0x02: value = (uintptr_t)heddle_unwind_bytes(from, 2); break;
    case 0x03: value = (uintptr_t)heddle_unwind_bytes(from, 4); break;
    case 0x0a: value = (uintptr_t)(intptr_t)(int16_t)heddle_unwind_bytes(from, 2); break;
    case 0x0b: value = (uintptr_t)(intptr_t)(int32_t)heddle_unwind_bytes(from, 4); break;
    default: from->failed = true; return 0;
    }
    switch (encoding & 0x70) {
    case 0x00: return value;
    case 0x10: return value ? value + place : 0;
    default: from->failed = true; return 0;
    }
}

/* -- finding a function's entry ------------------------------------------------------------------------------------ */

/*
 * Finds the record of the function at `pc`. `header` is the .eh_frame_hdr. Supports only the format that all linkers
 * write: sorted pairs of 32-bit numbers, relative to the header's start.
 */
static const uint8_t *find_record(const uint8_t *header, uintptr_t pc)
{
    if (!header || header[0] != 1 || header[2] != 0x03 || header[3] != 0x3b)
        return NULL;
    heddle_unwind_reader from = {.at = header + 4, .end = header + 32};
    read_pointer(&from, header[1]);
    uint32_t count = (uint32_t)heddle_unwind_bytes(&from, 4);
    if (from.failed || !count)
        return NULL;
    const uint8_t *table = from.at;
    int64_t wanted = (int64_t)(pc - (uintptr_t)header);
    uint32_t low = 0, high = count;
    while (low + 1 < high) {
        uint32_t middle = low + (high - low) / 2;
        int32_t start;
        memcpy(&start, table + (size_t)middle * 8, sizeof(start));
        if (start <= wanted)
            low = middle;
        else
            high = middle;
    }
    int32_t pair[2];
    memcpy(pair, table + (size_t)low * 8, sizeof(pair));
    return pair[0] <= wanted ? header + pair[1] : NULL;
}

static heddle_unwind_reader open_record(const uint8_t *record)
{
    uint32_t length;
    memcpy(&length, record, sizeof(length));
    bool usable = length && length != UINT32_MAX;
    return (heddle_unwind_reader){.at = record + 4, .end = record + 4 + (usable ? length : 0), .failed = !usable};
}

static bool read_common(const uint8_t *record, heddle_function_entry *to)
{
    heddle_unwind_reader from = open_record(record);
    heddle_unwind_bytes(&from, 4);
    uint8_t version = (uint8_t)heddle_unwind_bytes(&from, 1);
    const char *augmentation = (const char *)from.at;
    while (!from.failed && heddle_unwind_bytes(&from, 1))
        continue;
    to->code_alignment = heddle_unwind_unsigned(&from);
    to->data_alignment = heddle_unwind_signed(&from);
    uint64_t return_register = version == 1 ? heddle_unwind_bytes(&from, 1) : heddle_unwind_unsigned(&from);
    to->pointer_encoding = 0;
    to->has_augmentation = augmentation[0] == 'z';
    if (from.failed || (version != 1 && version != 3) || return_register != HEDDLE_UNWIND_RETURN_ADDRESS ||
        (augmentation[0] && !to->has_augmentation))
        return false;
    if (to->has_augmentation) {
        uint64_t size = heddle_unwind_unsigned(&from);
        heddle_unwind_reader data = {.at = from.at, .end = from.at + size};
        for (const char *letter = augmentation + 1; *letter; letter++) {
            if (*letter == 'R')
                to->pointer_encoding = (uint8_t)heddle_unwind_bytes(&data, 1);
            else if (*letter == 'L')
                heddle_unwind_bytes(&data, 1);
            else if (*letter == 'P')
                read_pointer(&data, (uint8_t)heddle_unwind_bytes(&data, 1) & 0x0f);
            else if (*letter != 'B')
                return false; /* unknown; or 'S': the frame of a signal handler, in which fibers never switch */
        }
        if (data.failed || size > (uint64_t)(from.end - from.at))
            return false;
        from.at += size;
    }
    to->initial = from.at;
    to->initial_end = from.end;
    return true;
}

bool heddle_unwind_find_entry(const heddle_library *library, uintptr_t pc, heddle_function_entry *to)
{
    const uint8_t *record = find_record(library->unwind_table, pc);
    if (!record)
        return false;
    heddle_unwind_reader from = open_record(record);
    const uint8_t *place = from.at;
    uint32_t distance = (uint32_t)heddle_unwind_bytes(&from, 4);
    if (from.failed || !distance || !read_common(place - distance, to))
        return false;
    to->start = read_pointer(&from, to->pointer_encoding);
    to->end = to->start + read_pointer(&from, to->pointer_encoding & 0x0f);
    if (to->has_augmentation)
        from.at += heddle_unwind_unsigned(&from);
    to->program = from.at;
    to->program_end = from.end;
    return !from.failed && from.at <= from.end && pc >= to->start && pc < to->end;
}

/* -- the rules at an address --------------------------------------------------------------------------------------- */

typedef struct {
    heddle_frame_rules now, initial, saved[STATES];
    int depth;
    uint64_t location;
} rule_machine;

static void set_rule(rule_machine *self, uint64_t number, heddle_rule_kind kind, int64_t offset)
{
    if (number < HEDDLE_UNWIND_REGISTERS) {
        self->now.rules[number].kind = kind;
        self->now.rules[number].offset = (int32_t)offset;
    }
}

static void restore_rule(rule_machine *self, uint64_t number)
{
    if (number < HEDDLE_UNWIND_REGISTERS)
        self->now.rules[number] = self->initial.rules[number];
}

static void set_cfa(rule_machine *self, uint64_t number, int64_t offset)
{
    self->now.cfa_register = number < HEDDLE_UNWIND_REGISTERS ? (uint32_t)number : HEDDLE_UNWIND_REGISTERS;
    self->now.cfa_offset = offset;
    self->now.cfa_expression = NULL;
}

static void skip_expression(heddle_unwind_reader *from)
{
    uint64_t size = heddle_unwind_unsigned(from);
    if (size > (uint64_t)(from->end - from->at))
        from->failed = true;
    else
        from->at += size;
}

/* Runs one call frame instruction (DWARF 5, section 6.4.2). Returns false for an unknown or invalid instruction. */
static bool run_instruction(rule_machine *self, heddle_unwind_reader *from, const heddle_function_entry *entry)
{
    uint8_t code = (uint8_t)heddle_unwind_bytes(from, 1);
    uint64_t number = code & 0x3f;
    switch (code & 0xc0) {
    case 0x40: self->location += number * entry->code_alignment; return true;
    case 0x80:
        set_rule(self, number, HEDDLE_RULE_OFFSET, (int64_t)heddle_unwind_unsigned(from) * entry->data_alignment);
        return true;
    case 0xc0: restore_rule(self, number); return true;
    }
    switch (code) {
    case 0x00: return true;
    case 0x01: self->location = read_pointer(from, entry->pointer_encoding); return true;
    case 0x02: self->location += heddle_unwind_bytes(from, 1) * entry->code_alignment; return true;
    case 0x03: self->location += heddle_unwind_bytes(from, 2) * entry->code_alignment; return true;
    case 0x04: self->location += heddle_unwind_bytes(from, 4) * entry->code_alignment; return true;
    case 0x05:
        number = heddle_unwind_unsigned(from);
        set_rule(self, number, HEDDLE_RULE_OFFSET, (int64_t)heddle_unwind_unsigned(from) * entry->data_alignment);
        return true;
    case 0x06: restore_rule(self, heddle_unwind_unsigned(from)); return true;
    case 0x07: set_rule(self, heddle_unwind_unsigned(from), HEDDLE_RULE_LOST, 0); return true;
    case 0x08: set_rule(self, heddle_unwind_unsigned(from), HEDDLE_RULE_SAME, 0); return true;
    case 0x09:
        set_rule(self, heddle_unwind_unsigned(from), HEDDLE_RULE_LOST, 0);
        heddle_unwind_unsigned(from);
        return true;
    case 0x0a:
        if (self->depth == STATES)
            return false;
        self->saved[self->depth++] = self->now;
        return true;
    case 0x0b:
        if (!self->depth)
            return false;
        self->now = self->saved[--self->depth];
        return true;
    case 0x0c:
        number = heddle_unwind_unsigned(from);
        set_cfa(self, number, (int64_t)heddle_unwind_unsigned(from));
        return true;
    case 0x0d: set_cfa(self, heddle_unwind_unsigned(from), self->now.cfa_offset); return true;
    case 0x0e: set_cfa(self, self->now.cfa_register, (int64_t)heddle_unwind_unsigned(from)); return true;
    case 0x0f:
        self->now.cfa_expression_size = heddle_unwind_unsigned(from);
        self->now.cfa_expression = from->at;
        if (self->now.cfa_expression_size > (size_t)(from->end - from->at))
            return false;
        from->at += self->now.cfa_expression_size;
        return true;
    case 0x10: case 0x16:
        set_rule(self, heddle_unwind_unsigned(from), HEDDLE_RULE_LOST, 0);
        skip_expression(from);
        return true;
    case 0x11:
        number = heddle_unwind_unsigned(from);
        set_rule(self, number, HEDDLE_RULE_OFFSET, heddle_unwind_signed(from) * entry->data_alignment);
        return true;
    case 0x12:
        number = heddle_unwind_unsigned(from);
        set_cfa(self, number, heddle_unwind_signed(from) * entry->data_alignment);
        return true;
    case 0x13: set_cfa(self, self->now.cfa_register, heddle_unwind_signed(from) * entry->data_alignment); return true;
    case 0x14:
        number = heddle_unwind_unsigned(from);
        set_rule(self, number, HEDDLE_RULE_VALUE, (int64_t)heddle_unwind_unsigned(from) * entry->data_alignment);
        return true;
    case 0x2d: return true; /* ARM64: return addresses begin or cease to be signed here */
    case 0x2e: heddle_unwind_unsigned(from); return true; /* DW_CFA_GNU_args_size: not needed */
    default: return false;
    }
}

bool heddle_unwind_find_rules(const heddle_function_entry *entry, uintptr_t pc, heddle_frame_rules *rules)
{
    rule_machine self;
    memset(&self.now, 0, sizeof(self.now));
    self.initial = self.now;
    self.location = entry->start;
    self.depth = 0;
    heddle_unwind_reader initial = {.at = entry->initial, .end = entry->initial_end};
    while (initial.at < initial.end) {
        if (!run_instruction(&self, &initial, entry) || initial.failed)
            return false;
    }
    self.initial = self.now;
    self.location = entry->start;
    heddle_unwind_reader program = {.at = entry->program, .end = entry->program_end};
    while (program.at < program.end && self.location <= pc) {
        if (!run_instruction(&self, &program, entry) || program.failed)
            return false;
    }
    *rules = self.now;
    return true;
}

#endif
