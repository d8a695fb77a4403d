#include "scheduler/stack_walk.h"

#if defined(__linux__) && (defined(__x86_64__) || defined(__aarch64__))

#include <string.h>

/* Registers by their numbers in DWARF (System V ABI for AMD64, figure 3.36; DWARF for the Arm 64-bit Architecture). */
enum {
#if defined(__x86_64__)
    STACK_POINTER = 7,
    RETURN_ADDRESS = 16,
    REGISTERS = 17,
#else
    STACK_POINTER = 31,
    RETURN_ADDRESS = 30,
    REGISTERS = 32,
#endif
    FRAMES = 100000, /* a bound; a stack has room for fewer */
    STATES = 4,      /* of DW_CFA_remember_state within each other */
    OPERANDS = 8,    /* of an expression */
    GAP = 64,        /* words that the frame of code without a table may take */
};

typedef struct {
    uintptr_t values[REGISTERS];
    uint64_t known; /* a bit a register */
    uintptr_t pc;
    uintptr_t base;
} machine;

typedef enum {
    RULE_SAME,
    RULE_OFFSET, /* saved at the canonical frame address plus `offset` */
    RULE_VALUE,  /* it is that address */
    RULE_LOST,
} rule_kind;

typedef struct {
    int64_t cfa_offset;
    const uint8_t *cfa_expression; /* in place of the two beside */
    size_t cfa_expression_size;
    uint32_t cfa_register;
    struct {
        int32_t kind; /* of rule_kind */
        int32_t offset;
    } rules[REGISTERS];
} frame_rules;

/* What a function's entry in .eh_frame says. */
typedef struct {
    uintptr_t start, end;
    const uint8_t *initial, *initial_end, *program, *program_end;
    uint64_t code_alignment;
    int64_t data_alignment;
    uint8_t pointer_encoding;
    bool has_augmentation;
} function_entry;

/* -- reading ------------------------------------------------------------------------------------------------------- */

typedef struct {
    const uint8_t *at, *end;
    bool failed;
} reader;

static uint64_t read_bytes(reader *from, size_t size)
{
    uint64_t value = 0;
    if ((size_t)(from->end - from->at) < size) {
        from->failed = true;
        from->at = from->end;
        return 0;
    }
    memcpy(&value, from->at, size); /* both machines are little-endian */
    from->at += size;
    return value;
}

static uint64_t read_unsigned(reader *from)
{
    uint64_t value = 0;
    for (unsigned shift = 0; shift < 64; shift += 7) {
        uint64_t byte = read_bytes(from, 1);
        value |= (byte & 0x7f) << shift;
        if (!(byte & 0x80))
            return value;
    }
    from->failed = true;
    return 0;
}

static int64_t read_signed(reader *from)
{
    uint64_t value = 0;
    for (unsigned shift = 0; shift < 64;) {
        uint64_t byte = read_bytes(from, 1);
        value |= (byte & 0x7f) << shift;
        shift += 7;
        if (!(byte & 0x80))
            return (int64_t)(shift < 64 && byte & 0x40 ? value | ~UINT64_C(0) << shift : value);
    }
    from->failed = true;
    return 0;
}

/* DW_EH_PE_*: the low half says the size, the high half what it is relative to. */
static uintptr_t read_pointer(reader *from, uint8_t encoding)
{
    uintptr_t place = (uintptr_t)from->at, value;
    switch (encoding & 0x0f) {
    case 0x00: case 0x04: case 0x0c: value = (uintptr_t)read_bytes(from, 8); break;
    case 0x02: value = (uintptr_t)read_bytes(from, 2); break;
    case 0x03: value = (uintptr_t)read_bytes(from, 4); break;
    case 0x0a: value = (uintptr_t)(intptr_t)(int16_t)read_bytes(from, 2); break;
    case 0x0b: value = (uintptr_t)(intptr_t)(int32_t)read_bytes(from, 4); break;
    default: from->failed = true; return 0;
    }
    switch (encoding & 0x70) {
    case 0x00: return value;
    case 0x10: return value ? value + place : 0;
    default: from->failed = true; return 0;
    }
}

/* -- finding a function's entry ------------------------------------------------------------------------------------ */

/* The table of .eh_frame_hdr in the form that every linker writes: sorted pairs of 32 bits, relative to itself. */
static const uint8_t *find_record(const uint8_t *header, uintptr_t pc)
{
    if (!header || header[0] != 1 || header[2] != 0x03 || header[3] != 0x3b)
        return NULL;
    reader from = {.at = header + 4, .end = header + 32};
    read_pointer(&from, header[1]);
    uint32_t count = (uint32_t)read_bytes(&from, 4);
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

static reader open_record(const uint8_t *record)
{
    uint32_t length;
    memcpy(&length, record, sizeof(length));
    bool usable = length && length != UINT32_MAX;
    return (reader){.at = record + 4, .end = record + 4 + (usable ? length : 0), .failed = !usable};
}

static bool read_common(const uint8_t *record, function_entry *to)
{
    reader from = open_record(record);
    read_bytes(&from, 4);
    uint8_t version = (uint8_t)read_bytes(&from, 1);
    const char *augmentation = (const char *)from.at;
    while (!from.failed && read_bytes(&from, 1))
        continue;
    to->code_alignment = read_unsigned(&from);
    to->data_alignment = read_signed(&from);
    uint64_t return_register = version == 1 ? read_bytes(&from, 1) : read_unsigned(&from);
    to->pointer_encoding = 0;
    to->has_augmentation = augmentation[0] == 'z';
    if (from.failed || (version != 1 && version != 3) || return_register != RETURN_ADDRESS ||
        (augmentation[0] && !to->has_augmentation))
        return false;
    if (to->has_augmentation) {
        uint64_t size = read_unsigned(&from);
        reader data = {.at = from.at, .end = from.at + size};
        for (const char *letter = augmentation + 1; *letter; letter++) {
            if (*letter == 'R')
                to->pointer_encoding = (uint8_t)read_bytes(&data, 1);
            else if (*letter == 'L')
                read_bytes(&data, 1);
            else if (*letter == 'P')
                read_pointer(&data, (uint8_t)read_bytes(&data, 1) & 0x0f);
            else if (*letter != 'B')
                return false; /* 'S': the frame of a signal, which no switch of fibers happens above */
        }
        if (data.failed || size > (uint64_t)(from.end - from.at))
            return false;
        from.at += size;
    }
    to->initial = from.at;
    to->initial_end = from.end;
    return true;
}

static bool find_entry(const heddle_library *library, uintptr_t pc, function_entry *to)
{
    const uint8_t *record = find_record(library->unwind_table, pc);
    if (!record)
        return false;
    reader from = open_record(record);
    const uint8_t *place = from.at;
    uint32_t distance = (uint32_t)read_bytes(&from, 4);
    if (from.failed || !distance || !read_common(place - distance, to))
        return false;
    to->start = read_pointer(&from, to->pointer_encoding);
    to->end = to->start + read_pointer(&from, to->pointer_encoding & 0x0f);
    if (to->has_augmentation)
        from.at += read_unsigned(&from);
    to->program = from.at;
    to->program_end = from.end;
    return !from.failed && from.at <= from.end && pc >= to->start && pc < to->end;
}

/* -- its rules at an address --------------------------------------------------------------------------------------- */

typedef struct {
    frame_rules now, initial, saved[STATES];
    int depth;
    uint64_t location;
} rule_machine;

static void set_rule(rule_machine *self, uint64_t number, rule_kind kind, int64_t offset)
{
    if (number < REGISTERS) {
        self->now.rules[number].kind = kind;
        self->now.rules[number].offset = (int32_t)offset;
    }
}

static void restore_rule(rule_machine *self, uint64_t number)
{
    if (number < REGISTERS)
        self->now.rules[number] = self->initial.rules[number];
}

static void set_cfa(rule_machine *self, uint64_t number, int64_t offset)
{
    self->now.cfa_register = number < REGISTERS ? (uint32_t)number : REGISTERS;
    self->now.cfa_offset = offset;
    self->now.cfa_expression = NULL;
}

static void skip_expression(reader *from)
{
    uint64_t size = read_unsigned(from);
    if (size > (uint64_t)(from->end - from->at))
        from->failed = true;
    else
        from->at += size;
}

/* DWARF 5, section 6.4.2. False: an instruction that is not known. */
static bool run_instruction(rule_machine *self, reader *from, const function_entry *entry)
{
    uint8_t code = (uint8_t)read_bytes(from, 1);
    uint64_t number = code & 0x3f;
    switch (code & 0xc0) {
    case 0x40: self->location += number * entry->code_alignment; return true;
    case 0x80: set_rule(self, number, RULE_OFFSET, (int64_t)read_unsigned(from) * entry->data_alignment); return true;
    case 0xc0: restore_rule(self, number); return true;
    }
    switch (code) {
    case 0x00: return true;
    case 0x01: self->location = read_pointer(from, entry->pointer_encoding); return true;
    case 0x02: self->location += read_bytes(from, 1) * entry->code_alignment; return true;
    case 0x03: self->location += read_bytes(from, 2) * entry->code_alignment; return true;
    case 0x04: self->location += read_bytes(from, 4) * entry->code_alignment; return true;
    case 0x05:
        number = read_unsigned(from);
        set_rule(self, number, RULE_OFFSET, (int64_t)read_unsigned(from) * entry->data_alignment);
        return true;
    case 0x06: restore_rule(self, read_unsigned(from)); return true;
    case 0x07: set_rule(self, read_unsigned(from), RULE_LOST, 0); return true;
    case 0x08: set_rule(self, read_unsigned(from), RULE_SAME, 0); return true;
    case 0x09: set_rule(self, read_unsigned(from), RULE_LOST, 0); read_unsigned(from); return true;
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
        number = read_unsigned(from);
        set_cfa(self, number, (int64_t)read_unsigned(from));
        return true;
    case 0x0d: set_cfa(self, read_unsigned(from), self->now.cfa_offset); return true;
    case 0x0e: set_cfa(self, self->now.cfa_register, (int64_t)read_unsigned(from)); return true;
    case 0x0f:
        self->now.cfa_expression_size = read_unsigned(from);
        self->now.cfa_expression = from->at;
        if (self->now.cfa_expression_size > (size_t)(from->end - from->at))
            return false;
        from->at += self->now.cfa_expression_size;
        return true;
    case 0x10: case 0x16:
        set_rule(self, read_unsigned(from), RULE_LOST, 0);
        skip_expression(from);
        return true;
    case 0x11:
        number = read_unsigned(from);
        set_rule(self, number, RULE_OFFSET, read_signed(from) * entry->data_alignment);
        return true;
    case 0x12:
        number = read_unsigned(from);
        set_cfa(self, number, read_signed(from) * entry->data_alignment);
        return true;
    case 0x13: set_cfa(self, self->now.cfa_register, read_signed(from) * entry->data_alignment); return true;
    case 0x14:
        number = read_unsigned(from);
        set_rule(self, number, RULE_VALUE, (int64_t)read_unsigned(from) * entry->data_alignment);
        return true;
    case 0x2d: return true; /* ARM64: return addresses are signed from here on, or no longer */
    case 0x2e: read_unsigned(from); return true; /* the size of the arguments */
    default: return false;
    }
}

static bool find_rules(const function_entry *entry, uintptr_t pc, frame_rules *rules)
{
    rule_machine self;
    memset(&self.now, 0, sizeof(self.now));
    self.location = entry->start;
    self.depth = 0;
    reader initial = {.at = entry->initial, .end = entry->initial_end};
    while (initial.at < initial.end) {
        if (!run_instruction(&self, &initial, entry) || initial.failed)
            return false;
    }
    self.initial = self.now;
    self.location = entry->start;
    reader program = {.at = entry->program, .end = entry->program_end};
    while (program.at < program.end && self.location <= pc) {
        if (!run_instruction(&self, &program, entry) || program.failed)
            return false;
    }
    *rules = self.now;
    return true;
}

/* -- one frame ----------------------------------------------------------------------------------------------------- */

__attribute__((no_sanitize("address"))) static bool load(const machine *self, uintptr_t address, uintptr_t *value)
{
    /* Only of the stack that is walked: every other address could be anything. */
    if (address < self->values[STACK_POINTER] || address > self->base - sizeof(*value) || address % sizeof(*value))
        return false;
    *value = *(const volatile uintptr_t *)address;
    return true;
}

static bool is_known(const machine *self, uint32_t number)
{
    return number < REGISTERS && self->known >> number & 1;
}

/* What compilers write for functions that align their stack: registers, offsets and a load. */
static bool evaluate(const machine *self, const uint8_t *expression, size_t size, uintptr_t *result)
{
    uintptr_t operands[OPERANDS];
    int count = 0;
    reader from = {.at = expression, .end = expression + size};
    while (from.at < from.end) {
        uint8_t code = (uint8_t)read_bytes(&from, 1);
        if (code >= 0x70 && code <= 0x8f) { /* DW_OP_breg0 … */
            uint32_t number = code - 0x70;
            if (count == OPERANDS || !is_known(self, number))
                return false;
            operands[count++] = self->values[number] + (uintptr_t)read_signed(&from);
        } else if (code == 0x06 && count) { /* DW_OP_deref */
            if (!load(self, operands[count - 1], &operands[count - 1]))
                return false;
        } else if (code == 0x23 && count) { /* DW_OP_plus_uconst */
            operands[count - 1] += (uintptr_t)read_unsigned(&from);
        } else {
            return false;
        }
    }
    *result = operands[0];
    return count == 1 && !from.failed;
}

static bool find_cfa(const machine *self, const frame_rules *rules, uintptr_t *cfa)
{
    if (rules->cfa_expression) {
        if (!evaluate(self, rules->cfa_expression, rules->cfa_expression_size, cfa))
            return false;
    } else if (is_known(self, rules->cfa_register)) {
        *cfa = self->values[rules->cfa_register] + (uintptr_t)rules->cfa_offset;
    } else {
        return false;
    }
    return *cfa >= self->values[STACK_POINTER] && *cfa <= self->base && *cfa % sizeof(uintptr_t) == 0;
}

/* ARM64 may sign them, in bits that no address of a program has. */
static uintptr_t strip_signature(uintptr_t address)
{
#if defined(__aarch64__)
    return address & ((UINTPTR_C(1) << 48) - 1);
#else
    return address;
#endif
}

static bool leave_frame(machine *self, const frame_rules *rules)
{
    machine caller = *self;
    uintptr_t cfa;
    if (!find_cfa(self, rules, &cfa))
        return false;
    for (uint32_t i = 0; i < REGISTERS; i++) {
        uintptr_t value;
        switch (rules->rules[i].kind) {
        case RULE_SAME: break;
        case RULE_OFFSET:
            if (!load(self, cfa + (uintptr_t)(intptr_t)rules->rules[i].offset, &value))
                return false;
            caller.values[i] = value;
            caller.known |= UINT64_C(1) << i;
            break;
        case RULE_VALUE: caller.values[i] = cfa + (uintptr_t)(intptr_t)rules->rules[i].offset; break;
        case RULE_LOST: caller.known &= ~(UINT64_C(1) << i); break;
        }
    }
    if (rules->rules[RETURN_ADDRESS].kind == RULE_LOST) { /* the outermost frame of a thread */
        caller.values[RETURN_ADDRESS] = 0;
    } else if (!is_known(&caller, RETURN_ADDRESS)) {
        return false;
    }
    caller.values[STACK_POINTER] = cfa;
    caller.known |= UINT64_C(1) << STACK_POINTER;
    caller.pc = strip_signature(caller.values[RETURN_ADDRESS]);
    if (caller.pc == self->pc && cfa == self->values[STACK_POINTER])
        return false;
    caller.known &= ~(UINT64_C(1) << RETURN_ADDRESS);
    *self = caller;
    return true;
}

/* -- code without a table ------------------------------------------------------------------------------------------ */

static bool follows_call(uintptr_t pc)
{
#if defined(__x86_64__)
    const uint8_t *code = (const uint8_t *)pc;
    if (code[-5] == 0xe8)
        return true;
    for (int length = 2; length <= 7; length++) {
        if (code[-length] == 0xff && (code[-length + 1] & 0x38) == 0x10)
            return true;
    }
    return false;
#else
    uint32_t code;
    memcpy(&code, (const uint8_t *)pc - 4, sizeof(code));
    return (code & 0xfc000000) == 0x94000000 || (code & 0xfffffc1f) == 0xd63f0000 || (code & 0xfefff800) == 0xd63f0800;
#endif
}

/*
 * A just-in-time compiler's frame holds a few registers and a return address: the next word that can be one is taken
 * for it. What it has saved of registers was not touched by it, or is not needed.
 */
static bool pass_over(machine *self)
{
    uintptr_t at = self->values[STACK_POINTER];
    for (int i = 0; i < GAP; i++, at += sizeof(uintptr_t)) {
        uintptr_t word;
        function_entry entry;
        if (!load(self, at, &word))
            return false;
        const heddle_library *library = heddle_code_map_find(word = strip_signature(word));
        if (!library || !heddle_code_map_find(word - 8) || !find_entry(library, word - 1, &entry) || !follows_call(word))
            continue;
        self->pc = word;
        self->values[STACK_POINTER] = at + sizeof(uintptr_t);
        return true;
    }
    return false;
}

/* -- all frames ---------------------------------------------------------------------------------------------------- */

/* What was found out of one address. Deep stacks consist of few different ones. */
typedef struct {
    uintptr_t pc; /* 0: nothing */
    const heddle_library *library;
    uintptr_t function;
    bool passed_over; /* no table knows it */
    bool usable;
    frame_rules rules;
} known_code;

enum { KNOWN = 256 };
static known_code known[KNOWN];
static uint64_t known_version;

static const known_code *look_up(uintptr_t pc)
{
    known_code *one = &known[(pc ^ pc >> 8) % KNOWN];
    function_entry entry;
    if (one->pc == pc)
        return one;
    one->pc = pc;
    one->library = heddle_code_map_find(pc - 1);
    one->passed_over = !one->library || !find_entry(one->library, pc - 1, &entry);
    one->function = one->passed_over ? pc : entry.start;
    one->usable = !one->passed_over && find_rules(&entry, pc - 1, &one->rules);
    return one;
}

static void forget_stale_code(void)
{
    if (known_version != heddle_code_map_version())
        memset(known, 0, sizeof(known));
    known_version = heddle_code_map_version();
}

static heddle_walk_end walk(machine *self, heddle_frame_visitor *visit, void *data)
{
    /* Where a fiber begins there is nothing but the function that Ruby has begun it with. */
    const uintptr_t outermost = self->base - 4 * sizeof(uintptr_t);
    for (int i = 0; i < FRAMES; i++) {
        if (!self->pc || self->values[STACK_POINTER] >= outermost)
            return HEDDLE_WALK_COMPLETE;
        const known_code *code = look_up(self->pc);
        if (code->library && !visit(&(heddle_stack_frame){.function = code->function, .library = code->library}, data))
            return HEDDLE_WALK_STOPPED;
        if (code->passed_over ? !pass_over(self) : !code->usable || !leave_frame(self, &code->rules))
            return HEDDLE_WALK_LOST;
    }
    return HEDDLE_WALK_LOST;
}

__attribute__((noinline)) heddle_walk_end heddle_stack_walk(uintptr_t base, heddle_frame_visitor *visit, void *data)
{
    machine self = {.base = base & ~(sizeof(uintptr_t) - 1)};
    /* All at one address, so that this function's own entry says how to leave it. */
#if defined(__x86_64__)
    uintptr_t saved[8];
    __asm__ volatile("leaq 0f(%%rip), %%rax\n0:\n\tmovq %%rax, 0(%0)\n\tmovq %%rbx, 8(%0)\n\tmovq %%rbp, 16(%0)\n\t"
                     "movq %%rsp, 24(%0)\n\tmovq %%r12, 32(%0)\n\tmovq %%r13, 40(%0)\n\tmovq %%r14, 48(%0)\n\t"
                     "movq %%r15, 56(%0)"
                     :
                     : "r"(saved)
                     : "rax", "memory");
    static const uint8_t numbers[] = {RETURN_ADDRESS, 3, 6, STACK_POINTER, 12, 13, 14, 15};
#else
    uintptr_t saved[13];
    __asm__ volatile("adr x9, 0f\n0:\n\tstr x9, [%0]\n\tstp x19, x20, [%0, 8]\n\tstp x21, x22, [%0, 24]\n\t"
                     "stp x23, x24, [%0, 40]\n\tstp x25, x26, [%0, 56]\n\tstp x27, x28, [%0, 72]\n\t"
                     "mov x9, sp\n\tstp x29, x9, [%0, 88]"
                     :
                     : "r"(saved)
                     : "x9", "memory");
    static const uint8_t numbers[] = {RETURN_ADDRESS, 19, 20, 21, 22, 23, 24, 25, 26, 27, 28, 29, STACK_POINTER};
#endif
    for (size_t i = 0; i < sizeof(numbers); i++) {
        self.values[numbers[i]] = saved[i];
        self.known |= UINT64_C(1) << numbers[i];
    }
    self.pc = self.values[RETURN_ADDRESS];
    forget_stale_code();
#if defined(__x86_64__)
    self.known &= ~(UINT64_C(1) << RETURN_ADDRESS);
#else
    self.values[RETURN_ADDRESS] = (uintptr_t)__builtin_return_address(0);
#endif
    return walk(&self, visit, data);
}

#else

heddle_walk_end heddle_stack_walk(uintptr_t base, heddle_frame_visitor *visit, void *data)
{
    (void)base, (void)visit, (void)data;
    return HEDDLE_WALK_LOST;
}

#endif
