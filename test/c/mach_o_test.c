/* sources: offload/mach_o.c */
#include "check.h"

#include "offload/mach_o.h"

#include <string.h>

/*
 * An image as the linker of macOS lays it out, made here: a header with its commands, two segments of pointers, and
 * what the file has at its end (symbols, names, indirect symbols). It was linked for one address and is loaded to
 * another.
 */

enum {
    LINKED_AT = 0x100000000,
    DATA_AT = 0x1000,
    CONST_AT = 0x2000,
    LINK_EDIT_AT = 0x3000,
    LINK_EDIT_IN_FILE = 0x2800, /* not as far as in memory */
    SYMBOLS = 0x2800,
    NAMES = 0x2a00,
    INDIRECT = 0x2c00,
    SIZE = 0x4000,
};

static union {
    char bytes[SIZE];
    uint64_t aligned;
} image;
static size_t end_of_commands;
static uint32_t commands;

static void put32(size_t at, uint32_t value)
{
    memcpy(image.bytes + at, &value, sizeof(value));
}

static void put64(size_t at, uint64_t value)
{
    memcpy(image.bytes + at, &value, sizeof(value));
}

static size_t add_command(uint32_t kind, uint32_t size)
{
    size_t at = end_of_commands;
    put32(at, kind);
    put32(at + 4, size);
    end_of_commands += size;
    put32(16, ++commands);
    put32(20, (uint32_t)(end_of_commands - 32));
    return at;
}

static size_t add_segment(const char *name, uint64_t address, uint64_t size, uint32_t sections, uint32_t flags)
{
    size_t at = add_command(0x19, 72 + 80 * sections);
    strncpy(image.bytes + at + 8, name, 16);
    put64(at + 24, LINKED_AT + address);
    put64(at + 32, size);
    put32(at + 60, 3);
    put32(at + 64, sections);
    put32(at + 68, flags);
    return at;
}

static void set_section(size_t segment, unsigned index, uint64_t address, uint64_t size, uint32_t flags,
                        uint32_t indirect)
{
    size_t at = segment + 72 + 80 * index;
    put64(at + 32, LINKED_AT + address);
    put64(at + 40, size);
    put32(at + 64, flags);
    put32(at + 68, indirect);
}

static void add_symbol(uint32_t index, uint32_t name, const char *text)
{
    put32(LINK_EDIT_AT - LINK_EDIT_IN_FILE + SYMBOLS + index * 16, name);
    strcpy(image.bytes + LINK_EDIT_AT - LINK_EDIT_IN_FILE + NAMES + name, text);
}

static void build(void)
{
    memset(image.bytes, 0, SIZE);
    end_of_commands = 32;
    commands = 0;
    put32(0, 0xfeedfacf);
    size_t zero = add_segment("__PAGEZERO", 0, LINKED_AT, 0, 0);
    put64(zero + 24, 0);
    put32(zero + 60, 0);
    add_segment("__TEXT", 0, 0x1000, 0, 0);
    size_t data = add_segment("__DATA", DATA_AT, 0x1000, 2, 0);
    set_section(data, 0, DATA_AT, 24, 0x7, 0);         /* lazy pointers: three */
    set_section(data, 1, DATA_AT + 0x100, 16, 0x0, 0); /* the program's own data */
    size_t constant = add_segment("__DATA_CONST", CONST_AT, 0x1000, 1, 0x10);
    set_section(constant, 0, CONST_AT, 32, 0x6, 3); /* pointers: four */
    size_t link_edit = add_segment("__LINKEDIT", LINK_EDIT_AT, 0x1000, 0, 0);
    put64(link_edit + 40, LINK_EDIT_IN_FILE);

    size_t symbols = add_command(0x2, 24);
    put32(symbols + 8, SYMBOLS);
    put32(symbols + 12, 4);
    put32(symbols + 16, NAMES);
    put32(symbols + 20, 0x100);
    size_t dynamic = add_command(0xb, 80);
    put32(dynamic + 56, INDIRECT);
    put32(dynamic + 60, 6); /* one fewer than there are pointers */
    add_symbol(0, 1, "_rb_nogvl");
    add_symbol(1, 0x20, "_select$DARWIN_EXTSN");
    add_symbol(2, 0x40, "dyld_stub_binder"); /* no underscore: not of C */
    add_symbol(3, 0x60, "_poll$NOCANCEL");
    const uint32_t indirect[] = {1, 0, 2, 0x80000000, 0x40000000, 3};
    for (size_t i = 0; i < sizeof(indirect) / sizeof(indirect[0]); i++)
        put32(LINK_EDIT_AT - LINK_EDIT_IN_FILE + INDIRECT + i * 4, indirect[i]);
}

typedef struct {
    heddle_mach_o_import seen[8];
    int count, most;
} visited;

static bool note(const heddle_mach_o_import *import, void *data)
{
    visited *self = data;
    self->seen[self->count++] = *import;
    return self->count < self->most;
}

static visited visit(int most)
{
    visited result = {.most = most};
    heddle_mach_o_imports(image.bytes, note, &result);
    return result;
}

static void every_imported_pointer_has_its_name_and_place(void)
{
    build();
    visited all = visit(8);
    CHECK_EQUAL(3, all.count);
    CHECK(strcmp(all.seen[0].name, "select$DARWIN_EXTSN") == 0);
    CHECK((char *)all.seen[0].slot == image.bytes + DATA_AT);
    CHECK(all.seen[0].lazy && !all.seen[0].read_only);
    CHECK(strcmp(all.seen[1].name, "rb_nogvl") == 0);
    CHECK((char *)all.seen[1].slot == image.bytes + DATA_AT + 8);
    CHECK(strcmp(all.seen[2].name, "poll$NOCANCEL") == 0);
    CHECK((char *)all.seen[2].slot == image.bytes + CONST_AT + 16);
    CHECK(!all.seen[2].lazy && all.seen[2].read_only);
}

static void a_visitor_can_stop(void)
{
    build();
    CHECK_EQUAL(1, visit(1).count);
    CHECK_EQUAL(2, visit(2).count);
}

static void an_image_without_tables_has_no_imports(void)
{
    build();
    put32(20, 0); /* no bytes of commands */
    CHECK_EQUAL(0, visit(8).count);
    build();
    put32(36, 0); /* a command of no size */
    CHECK_EQUAL(0, visit(8).count);
}

static void variants_of_a_function_are_the_function(void)
{
    build();
    visited all = visit(8);
    CHECK(heddle_mach_o_named(&all.seen[0], "select"));
    CHECK(!heddle_mach_o_named(&all.seen[0], "sel"));
    CHECK(heddle_mach_o_named(&all.seen[1], "rb_nogvl"));
    CHECK(!heddle_mach_o_named(&all.seen[1], "rb_nogvl_more"));
    CHECK(!heddle_mach_o_named(&all.seen[2], "poll"));
}

static void what_it_contains_are_its_segments(void)
{
    build();
    CHECK(heddle_mach_o_contains(image.bytes, image.bytes));
    CHECK(heddle_mach_o_contains(image.bytes, image.bytes + DATA_AT + 8));
    CHECK(heddle_mach_o_contains(image.bytes, image.bytes + SIZE - 1));
    CHECK(!heddle_mach_o_contains(image.bytes, image.bytes + SIZE));
    CHECK(!heddle_mach_o_contains(image.bytes, image.bytes - 1)); /* the empty page before it is nobody's */
}

static void others_are_not_read(void)
{
    build();
    CHECK(heddle_mach_o_readable(image.bytes));
    put32(24, UINT32_C(1) << 31); /* in the system's cache */
    CHECK(!heddle_mach_o_readable(image.bytes));
    build();
    put32(0, 0xfeedface); /* 32 bits */
    CHECK(!heddle_mach_o_readable(image.bytes));
}

int main(int argc, char **argv)
{
    check_filter = argc > 1 ? argv[1] : NULL;
    check_run("mach-o", "every imported pointer has its name and place", every_imported_pointer_has_its_name_and_place);
    check_run("mach-o", "a visitor can stop", a_visitor_can_stop);
    check_run("mach-o", "an image without tables has no imports", an_image_without_tables_has_no_imports);
    check_run("mach-o", "variants of a function are the function", variants_of_a_function_are_the_function);
    check_run("mach-o", "what it contains are its segments", what_it_contains_are_its_segments);
    check_run("mach-o", "others are not read", others_are_not_read);
    return check_end();
}
