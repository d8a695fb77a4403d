#include "native_code/stack_walk.h"

#include "native_code/unwind_rules.h"

#if defined(__linux__) && (defined(__x86_64__) || defined(__aarch64__))

enum {
    FRAMES = 100000, /* the maximum number of frames of a walk */
    OPERANDS = 8,    /* the size of the operand stack of a DWARF expression */
    GAP = 64,        /* the maximum number of words of a frame without an unwind table */
};

typedef struct {
    uintptr_t values[HEDDLE_UNWIND_REGISTERS];
    uint64_t known; /* a bit for each register whose value is known */
    uintptr_t pc;
    uintptr_t base;
} machine;

/* -- one frame ----------------------------------------------------------------------------------------------------- */

__attribute__((no_sanitize("address"))) static bool load(const machine *self, uintptr_t address, uintptr_t *value)
{
    /* Reads only from the stack that is walked, because any other address may be invalid. */
    if (address < self->values[HEDDLE_UNWIND_STACK_POINTER] || address > self->base - sizeof(*value) ||
        address % sizeof(*value))
        return false;
    *value = *(const volatile uintptr_t *)address;
    return true;
}

static bool is_known(const machine *self, uint32_t number)
{
    return number < HEDDLE_UNWIND_REGISTERS && self->known >> number & 1;
}

/* Evaluates a DWARF expression. Supports only what occurs in functions that align their stack. */
static bool evaluate_expression(const machine *self, const uint8_t *expression, size_t size, uintptr_t *result)
{
    uintptr_t operands[OPERANDS];
    int count = 0;
    heddle_unwind_reader from = {.at = expression, .end = expression + size};
    while (from.at < from.end) {
        uint8_t code = (uint8_t)heddle_unwind_bytes(&from, 1);
        if (code >= 0x70 && code <= 0x8f) { /* DW_OP_breg0 … */
            uint32_t number = code - 0x70;
            if (count == OPERANDS || !is_known(self, number))
                return false;
            operands[count++] = self->values[number] + (uintptr_t)heddle_unwind_signed(&from);
        } else if (code == 0x06 && count) { /* DW_OP_deref */
            if (!load(self, operands[count - 1], &operands[count - 1]))
                return false;
        } else if (code == 0x23 && count) { /* DW_OP_plus_uconst */
            operands[count - 1] += (uintptr_t)heddle_unwind_unsigned(&from);
        } else {
            return false;
        }
    }
    *result = operands[0];
    return count == 1 && !from.failed;
}

static bool find_cfa(const machine *self, const heddle_frame_rules *rules, uintptr_t *cfa)
{
    if (rules->cfa_expression) {
        if (!evaluate_expression(self, rules->cfa_expression, rules->cfa_expression_size, cfa))
            return false;
    } else if (is_known(self, rules->cfa_register)) {
        *cfa = self->values[rules->cfa_register] + (uintptr_t)rules->cfa_offset;
    } else {
        return false;
    }
    return *cfa >= self->values[HEDDLE_UNWIND_STACK_POINTER] && *cfa <= self->base && *cfa % sizeof(uintptr_t) == 0;
}


static bool leave_frame(machine *self, const heddle_frame_rules *rules)
{
    machine caller = *self;
    uintptr_t cfa;
    if (!find_cfa(self, rules, &cfa))
        return false;
    for (uint32_t i = 0; i < HEDDLE_UNWIND_REGISTERS; i++) {
        uintptr_t value;
        switch (rules->rules[i].kind) {
        case HEDDLE_RULE_SAME: break;
        case HEDDLE_RULE_OFFSET:
            if (!load(self, cfa + (uintptr_t)(intptr_t)rules->rules[i].offset, &value))
                return false;
            caller.values[i] = value;
            caller.known |= UINT64_C(1) << i;
            break;
        case HEDDLE_RULE_VALUE: caller.values[i] = cfa + (uintptr_t)(intptr_t)rules->rules[i].offset; break;
        case HEDDLE_RULE_LOST: caller.known &= ~(UINT64_C(1) << i); break;
        }
    }
    if (rules->rules[HEDDLE_UNWIND_RETURN_ADDRESS].kind == HEDDLE_RULE_LOST) { /* the outermost frame of a thread */
        caller.values[HEDDLE_UNWIND_RETURN_ADDRESS] = 0;
    } else if (!is_known(&caller, HEDDLE_UNWIND_RETURN_ADDRESS)) {
        return false;
    }
    caller.values[HEDDLE_UNWIND_STACK_POINTER] = cfa;
    caller.known |= UINT64_C(1) << HEDDLE_UNWIND_STACK_POINTER;
    caller.pc = heddle_strip_signature(caller.values[HEDDLE_UNWIND_RETURN_ADDRESS]);
    if (caller.pc == self->pc && cfa == self->values[HEDDLE_UNWIND_STACK_POINTER])
        return false;
    caller.known &= ~(UINT64_C(1) << HEDDLE_UNWIND_RETURN_ADDRESS);
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
 * Leaves a frame of code without an unwind table, such as just-in-time compiled code. The frame contains a few saved
 * registers and a return address. The first word that may be a return address is used as the return address. The
 * registers are assumed to be unchanged or not needed.
 */
static bool skip_frame(machine *self)
{
    uintptr_t at = self->values[HEDDLE_UNWIND_STACK_POINTER];
    for (int i = 0; i < GAP; i++, at += sizeof(uintptr_t)) {
        uintptr_t word;
        heddle_function_entry entry;
        if (!load(self, at, &word))
            return false;
        const heddle_library *library = heddle_code_map_find(word = heddle_strip_signature(word));
        if (!library || !heddle_code_map_find(word - 8) || !heddle_unwind_find_entry(library, word - 1, &entry) ||
            !follows_call(word))
            continue;
        self->pc = word;
        self->values[HEDDLE_UNWIND_STACK_POINTER] = at + sizeof(uintptr_t);
        return true;
    }
    return false;
}

/* -- all frames ---------------------------------------------------------------------------------------------------- */

/* The cached unwind rules of one address. They are cached because deep stacks contain few different addresses. */
typedef struct {
    uintptr_t pc; /* 0: the entry is empty */
    const heddle_library *library;
    uintptr_t function;
    bool uncovered; /* no unwind table covers the address */
    bool usable;    /* `rules` are set */
    heddle_frame_rules rules;
} known_code;

enum { KNOWN = 256 };
static known_code known[KNOWN];
static uint64_t known_version;

static const known_code *find_rule(uintptr_t pc)
{
    known_code *one = &known[(pc ^ pc >> 8) % KNOWN];
    heddle_function_entry entry;
    if (one->pc == pc)
        return one;
    one->pc = pc;
    one->library = heddle_code_map_find(pc - 1);
    one->uncovered = !one->library || !heddle_unwind_find_entry(one->library, pc - 1, &entry);
    one->function = one->uncovered ? pc : entry.start;
    one->usable = !one->uncovered && heddle_unwind_find_rules(&entry, pc - 1, &one->rules);
    return one;
}

static void forget_stale_code(void)
{
    if (known_version != heddle_code_map_version())
        memset(known, 0, sizeof(known));
    known_version = heddle_code_map_version();
}

static heddle_walk_end walk_frames(machine *self, heddle_frame_visitor *visit, void *data)
{
    /* The last words of a fiber's stack belong to its outermost frame: the function with which Ruby has started it. */
    const uintptr_t outermost = self->base - 4 * sizeof(uintptr_t);
    for (int i = 0; i < FRAMES; i++) {
        if (!self->pc || self->values[HEDDLE_UNWIND_STACK_POINTER] >= outermost)
            return HEDDLE_WALK_COMPLETE;
        const known_code *code = find_rule(self->pc);
        if (code->library && !visit(&(heddle_stack_frame){.function = code->function, .library = code->library}, data))
            return HEDDLE_WALK_STOPPED;
        if (code->uncovered ? !skip_frame(self) : !code->usable || !leave_frame(self, &code->rules))
            return HEDDLE_WALK_LOST;
    }
    return HEDDLE_WALK_LOST;
}

__attribute__((noinline)) heddle_walk_end heddle_stack_walk(uintptr_t base, heddle_frame_visitor *visit, void *data)
{
    machine self = {.base = base & ~(sizeof(uintptr_t) - 1)};
    /* All registers, the program counter included, are read at one place, so this function's unwind rules apply. */
#if defined(__x86_64__)
    uintptr_t saved[8];
    __asm__ volatile("leaq 0f(%%rip), %%rax\n0:\n\tmovq %%rax, 0(%0)\n\tmovq %%rbx, 8(%0)\n\tmovq %%rbp, 16(%0)\n\t"
                     "movq %%rsp, 24(%0)\n\tmovq %%r12, 32(%0)\n\tmovq %%r13, 40(%0)\n\tmovq %%r14, 48(%0)\n\t"
                     "movq %%r15, 56(%0)"
                     :
                     : "r"(saved)
                     : "rax", "memory");
    static const uint8_t numbers[] = {HEDDLE_UNWIND_RETURN_ADDRESS, 3, 6, HEDDLE_UNWIND_STACK_POINTER, 12, 13, 14, 15};
#else
    uintptr_t saved[13];
    __asm__ volatile("adr x9, 0f\n0:\n\tstr x9, [%0]\n\tstp x19, x20, [%0, 8]\n\tstp x21, x22, [%0, 24]\n\t"
                     "stp x23, x24, [%0, 40]\n\tstp x25, x26, [%0, 56]\n\tstp x27, x28, [%0, 72]\n\t"
                     "mov x9, sp\n\tstp x29, x9, [%0, 88]"
                     :
                     : "r"(saved)
                     : "x9", "memory");
    static const uint8_t numbers[] = {
        HEDDLE_UNWIND_RETURN_ADDRESS, 19, 20, 21, 22, 23, 24, 25, 26, 27, 28, 29, HEDDLE_UNWIND_STACK_POINTER,
    };
#endif
    for (size_t i = 0; i < sizeof(numbers); i++) {
        self.values[numbers[i]] = saved[i];
        self.known |= UINT64_C(1) << numbers[i];
    }
    self.pc = self.values[HEDDLE_UNWIND_RETURN_ADDRESS];
    forget_stale_code();
#if defined(__x86_64__)
    self.known &= ~(UINT64_C(1) << HEDDLE_UNWIND_RETURN_ADDRESS);
#else
    self.values[HEDDLE_UNWIND_RETURN_ADDRESS] = (uintptr_t)__builtin_return_address(0);
#endif
    return walk_frames(&self, visit, data);
}

#else

heddle_walk_end heddle_stack_walk(uintptr_t base, heddle_frame_visitor *visit, void *data)
{
    (void)base, (void)visit, (void)data;
    return HEDDLE_WALK_LOST;
}

#endif
