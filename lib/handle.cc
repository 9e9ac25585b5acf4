// The table of handles: slots with generations, claimed and given back by compare-and-swap alone.
#include "lib/handle.h"

#include <pthread.h>

#include <array>
#include <bit>
#include <memory>
#include <new>

namespace ng {
namespace {

using table::Slot;

constexpr int      SLOT_BITS = 26, PIN_BITS = 21, REFERENCE_BITS = 22, GENERATION_BITS = 18;
constexpr uint64_t PIN = 1, PINS = (uint64_t(1) << PIN_BITS) - 1;
constexpr uint64_t REFERENCE = PINS + 1, REFERENCES = ((uint64_t(1) << REFERENCE_BITS) - 1) << PIN_BITS;
constexpr int      NAME_SHIFT = PIN_BITS + REFERENCE_BITS;      // a word's name: its kind and generation
constexpr uint64_t LAST_GENERATION = (uint64_t(1) << GENERATION_BITS) - 1;
static_assert(NAME_SHIFT + GENERATION_BITS + 3 == 64, "a word is full");
static_assert(SLOT_BITS + GENERATION_BITS + 3 == 47, "handles are below 2^47");

// Chunk k holds 256 << k slots, so that a handful of pointers reach all of them.
constexpr int      FIRST_CHUNK_BITS = 8, CHUNKS = SLOT_BITS - FIRST_CHUNK_BITS;
constexpr uint32_t MAX_SLOTS = (uint32_t(1) << SLOT_BITS) - (uint32_t(1) << FIRST_CHUNK_BITS);

constinit std::array<std::atomic<Slot*>, CHUNKS> chunks{};
constinit std::atomic<uint32_t> used{0};        // slots that were ever handed out
constinit std::atomic<uint64_t> free_list{0};   // tag 32 | 1 + slot 32: the tag makes a list that came back a different one
constinit std::atomic<uint32_t> epoch{0};
constinit std::atomic<bool>     watches_forks{false};

void on_fork() { epoch.fetch_add(1, std::memory_order_relaxed); }

int chunk_of(uint32_t index) { return std::bit_width(index + (1u << FIRST_CHUNK_BITS)) - 1 - FIRST_CHUNK_BITS; }

Slot* slot_at(uint32_t index) noexcept
{
    const int k = chunk_of(index);
    if (k >= CHUNKS) return nullptr;
    Slot* chunk = chunks[size_t(k)].load(std::memory_order_acquire);
    return chunk ? chunk + (index + (1u << FIRST_CHUNK_BITS) - (1u << (FIRST_CHUNK_BITS + k))) : nullptr;
}

void ensure_chunk(int k)
{
    if (chunks[size_t(k)].load(std::memory_order_acquire)) return;
    std::unique_ptr<Slot[]> chunk(new Slot[size_t(1) << (FIRST_CHUNK_BITS + k)]);
    Slot* none = nullptr;
    if (chunks[size_t(k)].compare_exchange_strong(none, chunk.get(), std::memory_order_acq_rel)) (void)chunk.release();
}

uint32_t pop_free() noexcept    // 1 + a slot; 0: there is none
{
    uint64_t head = free_list.load(std::memory_order_acquire);
    while (uint32_t(head)) {
        const uint32_t next = slot_at(uint32_t(head) - 1)->next.load(std::memory_order_relaxed);
        const uint64_t after = ((head >> 32) + 1) << 32 | next;
        if (free_list.compare_exchange_weak(head, after, std::memory_order_acquire)) return uint32_t(head);
    }
    return 0;
}

void push_free(Slot& slot, uint32_t index) noexcept
{
    uint64_t head = free_list.load(std::memory_order_relaxed);
    do slot.next.store(uint32_t(head), std::memory_order_relaxed);
    while (!free_list.compare_exchange_weak(head, ((head >> 32) + 1) << 32 | (index + 1), std::memory_order_release));
}

uint32_t claim()
{
    if (const uint32_t free = pop_free()) return free - 1;
    uint32_t index = used.load(std::memory_order_relaxed);
    do {
        if (index >= MAX_SLOTS) throw std::bad_alloc();
        ensure_chunk(chunk_of(index));
    } while (!used.compare_exchange_weak(index, index + 1, std::memory_order_relaxed));
    Slot& slot = *slot_at(index);
    slot.word.store(uint64_t(1) << NAME_SHIFT, std::memory_order_relaxed);   // no handle has generation 0
    slot.next.store(index, std::memory_order_relaxed);
    return index;
}

// Lets a pin go. Who takes the last pin of what has no reference ends the generation, and then owns the slot alone.
void* let_go(Slot& slot) noexcept
{
    uint64_t word = slot.word.load(std::memory_order_relaxed), after;
    bool last;
    do {
        last = ((word - PIN) & (REFERENCES | PINS)) == 0;
        after = last ? (((word >> NAME_SHIFT) + 1) & LAST_GENERATION) << NAME_SHIFT : word - PIN;
    } while (!slot.word.compare_exchange_weak(word, after, std::memory_order_acq_rel, std::memory_order_relaxed));
    if (!last) return nullptr;
    void* object = slot.object.exchange(nullptr, std::memory_order_relaxed);
    // A slot that has used up its generations is never used again: an old handle cannot come back to life.
    if (after) push_free(slot, slot.next.load(std::memory_order_relaxed));
    return object;
}

Slot* slot_named(uint64_t handle, HandleKind kind) noexcept
{
    if (handle >> (SLOT_BITS + GENERATION_BITS) != uint64_t(kind)) return nullptr;
    return slot_at(uint32_t(handle & ((uint64_t(1) << SLOT_BITS) - 1)));
}

// Adds one to a count of a living object.
Slot* add(uint64_t handle, HandleKind kind, uint64_t one, uint64_t all) noexcept
{
    Slot* slot = slot_named(handle, kind);
    if (!slot) return nullptr;
    uint64_t word = slot->word.load(std::memory_order_relaxed);
    do {
        if (word >> NAME_SHIFT != handle >> SLOT_BITS || !(word & REFERENCES) || (word & all) == all) return nullptr;
    } while (!slot->word.compare_exchange_weak(word, word + one, std::memory_order_acquire, std::memory_order_relaxed));
    return slot;
}

}  // namespace

uint32_t fork_epoch() noexcept { return epoch.load(std::memory_order_relaxed); }

void watch_forks()
{
    if (watches_forks.load(std::memory_order_relaxed)) return;
    if (!watches_forks.exchange(true, std::memory_order_relaxed) && pthread_atfork(nullptr, nullptr, on_fork) != 0) {
        watches_forks.store(false, std::memory_order_relaxed);
        throw std::bad_alloc();
    }
}

namespace table {

uint64_t make(HandleKind kind, void* object, uint64_t owner)
{
    watch_forks();
    const uint32_t index = claim();
    Slot& slot = *slot_at(index);
    const uint64_t generation = slot.word.load(std::memory_order_relaxed) >> NAME_SHIFT & LAST_GENERATION;
    const uint64_t name = uint64_t(kind) << GENERATION_BITS | generation;
    slot.object.store(object, std::memory_order_relaxed);
    slot.owner.store(owner, std::memory_order_relaxed);
    slot.epoch.store(fork_epoch(), std::memory_order_relaxed);
    slot.next.store(index, std::memory_order_relaxed);      // in use: its own number, for its end
    slot.word.store(name << NAME_SHIFT | REFERENCE, std::memory_order_release);
    return name << SLOT_BITS | index;
}

Slot* pin(uint64_t handle, HandleKind kind) noexcept { return add(handle, kind, PIN, PINS); }
bool  retain(uint64_t handle, HandleKind kind) noexcept { return add(handle, kind, REFERENCE, REFERENCES) != nullptr; }
void* unpin(Slot& slot) noexcept { return let_go(slot); }

uint32_t references(uint64_t handle, HandleKind kind) noexcept
{
    const Slot* const slot = slot_named(handle, kind);
    const uint64_t word = slot ? slot->word.load(std::memory_order_acquire) : 0;
    return slot && word >> NAME_SHIFT == handle >> SLOT_BITS ? uint32_t((word & REFERENCES) >> PIN_BITS) : 0;
}

void* release(uint64_t handle, HandleKind kind) noexcept
{
    // The pin keeps the slot from ending its generation between the look-up and the release of the reference.
    Slot* slot = pin(handle, kind);
    if (!slot) return nullptr;
    uint64_t word = slot->word.load(std::memory_order_relaxed);
    while ((word & REFERENCES) &&
           !slot->word.compare_exchange_weak(word, word - REFERENCE, std::memory_order_acq_rel, std::memory_order_relaxed)) {}
    return let_go(*slot);
}

}  // namespace table
}  // namespace ng
