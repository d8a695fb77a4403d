#include "net/board.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

#ifdef HAVE_SYS_EVENTFD_H
#include <sys/eventfd.h>
#endif

static const uint64_t MAGIC = UINT64_C(0x68656464626f6172); /* "heddboar" */

static void use(heddle_board *board)
{
    board->header = board->memory.start;
    board->slots = (heddle_board_slot *)(board->header + 1);
}

int heddle_board_create(heddle_board *board, uint32_t slot_count)
{
    size_t size = sizeof(heddle_board_header) + (size_t)slot_count * HEDDLE_BOARD_SLOT;
    *board = (heddle_board){.poke_fd = -1};
    int result = heddle_shared_memory_create(&board->memory, "heddle-board", size);
    if (result < 0)
        return result;
#ifdef HAVE_SYS_EVENTFD_H
    board->poke_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
#endif
    use(board);
    board->slot_count = slot_count;
    board->header->version = HEDDLE_BOARD_VERSION;
    board->header->slot_size = HEDDLE_BOARD_SLOT;
    board->header->slot_count = slot_count;
    board->header->magic = MAGIC;
    return 0;
}

static bool check_header(heddle_board *board)
{
    const heddle_board_header *header = board->header;
    board->slot_count = header->slot_count;
    return header->magic == MAGIC && header->version == HEDDLE_BOARD_VERSION &&
           header->slot_size == HEDDLE_BOARD_SLOT &&
           board->memory.size >= sizeof(*header) + (size_t)board->slot_count * HEDDLE_BOARD_SLOT;
}

static uint32_t count_used(const heddle_board *board)
{
    uint32_t used = atomic_load_explicit(&board->header->used, memory_order_relaxed);
    return used < board->slot_count ? used : board->slot_count;
}

int heddle_board_open(heddle_board *board, int fd, int poke_fd)
{
    *board = (heddle_board){.poke_fd = poke_fd};
    int result = heddle_shared_memory_open(&board->memory, fd, sizeof(heddle_board_header));
    if (result == 0) {
        use(board);
        result = check_header(board) ? 0 : -EPROTO;
    }
    if (result < 0)
        heddle_board_close(board);
    return result;
}

void heddle_board_close(heddle_board *board)
{
    heddle_shared_memory_close(&board->memory);
    board->header = NULL;
    board->slots = NULL;
    if (board->poke_fd >= 0)
        close(board->poke_fd);
    board->poke_fd = -1;
}

static void wipe(heddle_board_slot *slot)
{
    /* Out of the count first: a reader between the lines must not take it for somebody idle. */
    HEDDLE_BOARD_SET(slot->accepting, 0);
    HEDDLE_BOARD_SET(slot->index, 0);
    HEDDLE_BOARD_SET(slot->pid, 0);
    HEDDLE_BOARD_SET(slot->in_flight, 0);
    HEDDLE_BOARD_SET(slot->connections, 0);
    HEDDLE_BOARD_SET(slot->waiting, 0);
    HEDDLE_BOARD_SET(slot->limit, 0);
    HEDDLE_BOARD_SET(slot->tick_began, 0);
    HEDDLE_BOARD_SET(slot->lag, 0);
    HEDDLE_BOARD_SET(slot->accepted, 0);
    HEDDLE_BOARD_SET(slot->requests, 0);
    HEDDLE_BOARD_SET(slot->stuck, 0);
    HEDDLE_BOARD_SET(slot->label, 0);
    HEDDLE_BOARD_SET(slot->stuck_since, 0);
    HEDDLE_BOARD_SET(slot->open, 0);
    HEDDLE_BOARD_SET(slot->reserve, 0);
}

int64_t heddle_board_take(heddle_board *board, uint32_t generation, uint32_t index)
{
    for (uint32_t i = 0; i < board->slot_count; i++) {
        heddle_board_slot *slot = &board->slots[i];
        uint32_t nobody = 0;
        /* Two masters have the board while the one takes over from the other. */
        if (!atomic_compare_exchange_strong(&slot->generation, &nobody, generation))
            continue;
        wipe(slot);
        HEDDLE_BOARD_SET(slot->index, index);
        uint32_t used = atomic_load(&board->header->used);
        while (used < i + 1 && !atomic_compare_exchange_weak(&board->header->used, &used, i + 1))
            continue;
        return i;
    }
    return -1;
}

void heddle_board_free(heddle_board *board, uint32_t number)
{
    heddle_board_slot *slot = &board->slots[number];
    wipe(slot);
    atomic_store(&slot->generation, 0);
}

void heddle_board_poke(const heddle_board *board)
{
    uint64_t one = 1;
    if (board->poke_fd >= 0 && write(board->poke_fd, &one, sizeof(one)) < 0 && errno == EAGAIN) {
        /* Its count is full: reading makes room, and the write is what wakes. */
        uint64_t count;
        if (read(board->poke_fd, &count, sizeof(count)) > 0 && write(board->poke_fd, &one, sizeof(one)) < 0)
            return; /* they look again by themselves, a little later */
    }
}

static bool can_accept(const heddle_board_slot *slot, int64_t now)
{
    if (!atomic_load_explicit(&slot->accepting, memory_order_relaxed) ||
        atomic_load_explicit(&slot->stuck, memory_order_relaxed))
        return false;
    int64_t tick_began = atomic_load_explicit(&slot->tick_began, memory_order_relaxed);
    return !tick_began || now - tick_began <= HEDDLE_BOARD_STUCK;
}

bool heddle_board_anybody_else(const heddle_board *board, const heddle_board_slot *mine, int64_t now)
{
    uint32_t used = count_used(board);
    for (uint32_t i = 0; i < used; i++) {
        if (&board->slots[i] != mine && can_accept(&board->slots[i], now))
            return true;
    }
    return false;
}

bool heddle_board_others_idler(const heddle_board *board, const heddle_board_slot *mine, int64_t now)
{
    uint32_t least = UINT32_MAX, used = count_used(board);
    for (uint32_t i = 0; i < used; i++) {
        const heddle_board_slot *slot = &board->slots[i];
        if (slot == mine || !can_accept(slot, now))
            continue;
        uint32_t load = heddle_board_load(slot);
        least = load < least ? load : least;
    }
    /* Some slack, so that not every connection makes them take turns. */
    return least != UINT32_MAX && heddle_board_load(mine) > least + 1 + least / 8;
}

#define GET(word) atomic_load_explicit(&(word), memory_order_relaxed)

bool heddle_board_holds_up(const heddle_board *board, uint32_t label)
{
    uint32_t used = label ? count_used(board) : 0;
    for (uint32_t i = 0; i < used; i++) {
        if (GET(board->slots[i].label) == label && GET(board->slots[i].stuck))
            return true;
    }
    return false;
}

static bool comes_before(const heddle_board_slot *slot, uint32_t rank)
{
    uint32_t reserve = GET(slot->reserve);
    return GET(slot->generation) && GET(slot->open) && (reserve == 0 || reserve < rank);
}

int64_t heddle_board_reserve_due(const heddle_board *board, const heddle_board_slot *mine, int64_t patience)
{
    uint32_t used = count_used(board), rank = GET(mine->reserve);
    int64_t due = INT64_MAX;
    for (uint32_t i = 0; i < used; i++) {
        const heddle_board_slot *slot = &board->slots[i];
        if (slot == mine || !comes_before(slot, rank))
            continue;
        if (!GET(slot->stuck))
            return INT64_MAX;
        int64_t over = GET(slot->stuck_since) + patience;
        due = due == INT64_MAX || over > due ? over : due;
    }
    return due;
}
