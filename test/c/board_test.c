/* sources: net/board.c */
#include "check.h"
#include "net/board.h"

/* C tests have no extconf.rb that would find it. */
#ifdef __linux__
#define HAVE_MEMFD_CREATE 1
#endif
#include "net/shared_memory.c"

/* Every worker can write the whole mapping: no process reads beyond it, whatever its header says. */

enum { SLOTS = 2 };

/* Far beyond the mapping, which is one page. */
enum { FORGED = 1000000 };

static heddle_board board;

static void open_board(void)
{
    CHECK_EQUAL(0, heddle_board_create(&board, SLOTS));
    CHECK_EQUAL(0, heddle_board_take(&board, 1, 0));
}

static void a_forged_count_of_used_slots_is_clamped(void)
{
    open_board();
    atomic_store(&board.header->used, FORGED);
    CHECK(!heddle_board_anybody_else(&board, &board.slots[0], 1));
    CHECK(!heddle_board_others_idler(&board, &board.slots[0], 1));
    heddle_board_close(&board);
}

static void a_forged_count_of_slots_gives_out_none_beyond_the_mapping(void)
{
    open_board();
    board.header->slot_count = FORGED;
    CHECK_EQUAL(1, heddle_board_take(&board, 1, 1));
    CHECK_EQUAL(-1, heddle_board_take(&board, 1, 2));
    heddle_board_close(&board);
}

static void a_header_that_claims_more_than_the_mapping_is_refused(void)
{
    open_board();
    board.header->slot_count = FORGED;
    heddle_board other;
    CHECK_EQUAL(-EPROTO, heddle_board_open(&other, MUST(dup(board.memory.fd)), -1));
    heddle_board_close(&board);
}

/* Whoever maps it would be ended by SIGBUS. */
static void the_memory_cannot_be_shrunk(void)
{
    open_board();
    CHECK_EQUAL(-1, ftruncate(board.memory.fd, 0));
    CHECK_EQUAL(EPERM, errno);
    CHECK_EQUAL(1, board.slots[0].generation);
    heddle_board_close(&board);
}

int main(int argc, char **argv)
{
    check_filter = argc > 1 ? argv[1] : NULL;
    check_run("board", "a forged count of used slots is clamped", a_forged_count_of_used_slots_is_clamped);
    check_run("board", "a forged count of slots gives out none beyond",
              a_forged_count_of_slots_gives_out_none_beyond_the_mapping);
    check_run("board", "a header that claims more is refused", a_header_that_claims_more_than_the_mapping_is_refused);
    check_run("board", "the memory can't be shrunk", the_memory_cannot_be_shrunk);
    return check_end();
}
