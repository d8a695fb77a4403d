#pragma once

/*
 * Looks up a code address in the unwind table of a library (.eh_frame): finds the function at this address, and where
 * that function has saved the caller's registers. Works on Linux on x86-64 and ARM64.
 */

#include "native_code/code_map.h"

/* Registers by their numbers in DWARF (System V ABI for AMD64, figure 3.36; DWARF for the Arm 64-bit Architecture). */
enum {
#if defined(__x86_64__)
    HEDDLE_UNWIND_STACK_POINTER = 7,
    HEDDLE_UNWIND_RETURN_ADDRESS = 16,
    HEDDLE_UNWIND_REGISTERS = 17,
#else
    HEDDLE_UNWIND_STACK_POINTER = 31,
    HEDDLE_UNWIND_RETURN_ADDRESS = 30,
    HEDDLE_UNWIND_REGISTERS = 32,
#endif
};

typedef enum {
    HEDDLE_RULE_SAME,   /* the function has not changed the register */
    HEDDLE_RULE_OFFSET, /* the register is saved at the canonical frame address plus `offset` */
    HEDDLE_RULE_VALUE,  /* the register's value is the canonical frame address plus `offset` */
    HEDDLE_RULE_LOST,   /* the register's value can't be restored */
} heddle_rule_kind;

typedef struct {
    int64_t cfa_offset;
    const uint8_t *cfa_expression; /* used instead of `cfa_register` and `cfa_offset`, unless it is NULL */
    size_t cfa_expression_size;
    uint32_t cfa_register;
    struct {
        int32_t kind; /* a heddle_rule_kind */
        int32_t offset;
    } rules[HEDDLE_UNWIND_REGISTERS];
} heddle_frame_rules;

/* A function's entry in .eh_frame. `initial` and `program` are instructions that compute heddle_frame_rules. */
typedef struct {
    uintptr_t start, end;
    const uint8_t *initial, *initial_end, *program, *program_end;
    uint64_t code_alignment;
    int64_t data_alignment;
    uint8_t pointer_encoding;
    bool has_augmentation;
} heddle_function_entry;

/* Finds the entry of the function at address `pc`. Returns false if the library's table has no such entry. */
bool heddle_unwind_find_entry(const heddle_library *library, uintptr_t pc, heddle_function_entry *to);
/*
 * Computes the rules at address `pc` of this function. Returns false if the entry has an instruction that is invalid,
 * or that this reader does not support.
 */
bool heddle_unwind_find_rules(const heddle_function_entry *entry, uintptr_t pc, heddle_frame_rules *rules);

/* -- reading DWARF ------------------------------------------------------------------------------------------------- */

typedef struct {
    const uint8_t *at, *end;
    bool failed;
} heddle_unwind_reader;

uint64_t heddle_unwind_bytes(heddle_unwind_reader *from, size_t size);
uint64_t heddle_unwind_unsigned(heddle_unwind_reader *from); /* LEB128 */
int64_t heddle_unwind_signed(heddle_unwind_reader *from);
