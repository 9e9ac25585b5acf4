// The machine that runs any fused kernel at once: its instructions, and what a launch of it is told. Host and device read it.
//
// A block's threads walk one list of instructions together; each works on ITEMS elements at a time. What instructions
// read and write are slots in shared memory; a slot is one or more units, a unit 16 bytes for each thread. Values of 32
// bits (f32, and integers of up to 32 bits, sign or zero extended; bools are 0 and 1) take UNITS_32, others UNITS_64.
//
//   shared   numbers [number_count][16]     a launch's constants, scalars and lengths, repeated to fill 16 bytes
//            folds [fold_count][threads][16]
//            row coordinates [row_axes][threads][4]
//            slots [units][threads][16]; the walked axes' coordinates come first, 32 bits each
//            accesses [access_count][32], list [code_count][16]: where there is room, else they stay where they came from
#pragma once

namespace ng::interpreter {

using u16 = unsigned short;
using u32 = unsigned int;
using i64 = long long;
using u64 = unsigned long long;

constexpr int ITEMS = 16, ITEMS_A_UNIT = 4, UNIT_BYTES = 16;
constexpr int UNITS_32 = ITEMS * 4 / UNIT_BYTES, UNITS_64 = ITEMS * 8 / UNIT_BYTES;
constexpr int MAX_THREADS = 128, MIN_THREADS = 32;
constexpr u32 MAX_SHARED_BYTES = 96 << 10;      // of a block; every architecture since sm_80 has 99 KiB
constexpr u32 MOST_SHARED_BYTES = 227 << 10;    // what sm_90 has
constexpr u32 NEAR_BYTES = 8 << 10;             // of accesses and a list that go to shared memory

// Operands: a slot's first unit, or NUMBER | the place of a number.
constexpr u16 NUMBER = 0x8000;
constexpr u32 NOWHERE = ~0u;                    // no instruction's place
constexpr u32 OF_ROW = 0x100;                   // in `more` of a store: one thread stores one element of a row

// What an instruction leaves in the threads' registers, the next one finds there: HELD below. So a chain of operations
// needs no slots.
enum Code : u16 {
    END,
    BEGIN_POINTS,    // to the block's first tile of points; where there is none, to `more`
    NEXT_POINTS,     // to the block's next tile, and to `more`
    BEGIN_ROWS,      // to the block's first rows
    NEXT_ROWS,       // to its next rows, and to `more`
    START,           // fold `place` anew, from number z
    BEGIN_PASS,      // pass y: to the rows' first points; where there is none, or another launch's, to `more`
    START_PASS,      // START, then BEGIN_PASS
    NEXT_POINT,      // to the rows' next points, and to `more`
    FINISH,          // fold `place` of kind `more`, of pass z: what the block's threads have comes together in slot `out`
    END_PASS,        // pass z: to `more` where other launches go on; place: once all threads of a row are here; HELD stays
    LOAD_64,         // out = by access `place`
    STORE_64,        // x, by access `place`; more: OF_ROW
    // From here on HELD is written, read, or stays.
    LOAD_8, LOAD_16, LOAD_32,               // HELD = by access `place`; more: a Transfer
    FINISH_HELD,     // + FOLD_SUM, FOLD_MIN or FOLD_MAX: HELD = fold `place` of f32, of pass z; then to `more` where other launches go on
    STORE_8 = FINISH_HELD + 4, STORE_16, STORE_32,            // HELD, by access `place`; more: a Transfer | OF_ROW
    HOLD, HOLD_NUMBER,                      // HELD = what lies at byte `more` of shared memory, of thread 0 or all
    KEEP,                                   // a slot there = HELD
    SPILL, FILL,                            // slot x goes to, slot `out` comes from, the block's scratch, from its unit `place` on; more: units
    WHERE,           // HELD = HELD ? y : z, 32 bits
    ROUND_F16, ROUND_BF16,
    FOLD_HELD,       // + FOLD_SUM, FOLD_MIN or FOLD_MAX, of f32: HELD into fold `place`
    FOLD_NEXT = FOLD_HELD + 4,      // the same, then NEXT_POINT
    FAST = FOLD_NEXT + 4,   // + a FastKind times FAST_ROWS + an operation on f32, counted from the first map
    SLOW = FAST + 4 * 150,  // + a SlowCode times CODES
    CODES = 1024,    // the machine branches on the rest by this
};
// What has slots or numbers as operands and a slot as result; HELD is lost.
enum SlowCode : u16 {
    GATHER_8, GATHER_16, GATHER_32, GATHER_64,  // by access `place`; x: index; y: its extent's place among the numbers, then its stride's
    INDEX,           // access `place` itself
    WHERE_64,
    FOLD,            // x into fold `place` of kind `more`
    RANDOM,          // x: index, y: key, z: step; more: a Draw
    CHANCE_F32, CHANCE_F64,                 // x: value, y: word; number z and those after it: bits, least, saturates, largest
    CHANCE_BITS,     // f64 to f64; z: bits
    DECODE,          // `more`, a Dtype: x's low bits as a number of it
    ENCODE,          // `more`, a Dtype: the number's bits
    CONVERT,         // from a Lane, y, to a Dtype, `more`
    MAP_F32, MAP_F64, MAP_I32, MAP_U32, MAP_I64, MAP_U64,   // `more`: the operation
};
// Where the other operand of two is, at `more` as HOLD has it, and whether it is the first one; maps of one or three
// operands are OF_SLOT, the three's others are y and z.
enum FastKind : u32 { OF_SLOT, OF_NUMBER, TURNED_SLOT, TURNED_NUMBER, FAST_KINDS };
constexpr u32 FAST_ROWS = 150;
static_assert(FAST + FAST_KINDS * FAST_ROWS == SLOW && SLOW < CODES, "codes do not meet");
enum Lane : u16 { LANE_F32, LANE_F64, LANE_I32, LANE_U32, LANE_I64, LANE_U64 };
enum Transfer : u16 { RAW, AS_F16, AS_BF16 };   // of 16-bit loads and stores: whether they convert
// In `more` of a load, of rows that have no more tiles than `kept_tiles`: it keeps what it loads in slot y, or finds it there.
constexpr u32 KEEPS = 0x200, KEPT = 0x400;
constexpr u32 MOST_KEPT_TILES = 2;
constexpr u32 KEEPING_BYTES = 44 << 10;         // of a block's shared memory: five blocks still share sm_90's
enum Draw : u32 { DRAW_BITS, DRAW_WORD3, DRAW_UNIFORM_F32, DRAW_UNIFORM_F64, DRAW_NORMAL_F32, DRAW_NORMAL_F64 };

// A fold's kind is its FoldWord times LANES plus the Lane that it folds.
constexpr u32 LANES = 6;
enum FoldWord : u32 { FOLD_SUM, FOLD_PROD, FOLD_MIN, FOLD_MAX, FOLD_ARGMIN, FOLD_ARGMAX, FOLD_ANY, FOLD_ALL };

struct alignas(16) Instruction {
    u16 code, place;
    u32 more;
    u16 out, x, y, z;
};
static_assert(sizeof(Instruction) == 16);

// How an access finds its elements in this launch: base + what the row gives + what the point gives.
enum Form : u32 {
    SAME = 1,        // no matter which point
    LISTED = 2,      // strides of each walked axis; else point * point_stride
    QUADS = 4,       // items 4 k .. 4 k + 3 lie side by side, aligned
    QUAD_SAME = 8,   // or are the same
    ROWS_LISTED = 16,
    APART = 64,      // whole tiles: items lie as far apart as the row has lanes, 16, 32 or 128 of them
    SPANS = 32,      // rows of two lanes side by side, and of neighbours from 16 bytes' borders on; of 16 and 32 bits
};
struct alignas(16) Access {
    i64 base, row_stride, point_stride;         // base: an address, of indices a number
    u32 form, strides;                          // where its strides begin among the words: of row axes, then walked ones
};
// One walked axis; quotients of numbers below 2^31 are (high(n * multiplier) + n) >> shift.
struct Axis {
    i64 extent;
    u32 multiplier, shift;
};

// Rows of ops.def on f32 that are a few instructions each, or so common that their code is worth it: those are FAST.
constexpr bool is_same(const char* a, const char* b) { return *a == *b && (*a == 0 || is_same(a + 1, b + 1)); }
constexpr bool is_fast(const char* name, float ulp)
{
    if (ulp == 0) return !is_same(name, "rem") && !is_same(name, "fmod") && !is_same(name, "nextafter");
    return is_same(name, "exp") || is_same(name, "log") || is_same(name, "tanh") || is_same(name, "sigmoid");
}

constexpr int WORDS = 493;
struct Numbers {
    const Instruction* code;
    char* scratch;                              // [fold][row][piece][16]; of a list that spills, [block][unit][thread][16]
    i64   rows, points;                         // points: of a row; without rows: of all
    i64   piece_points;                         // of a row; a multiple of a block's points
    u32   pieces, stage;                        // pieces 1: one launch; else launch `stage` walks that pass
    u32   row_mask, row_shift, lane_shift, lanes;       // thread t: row first + (t >> row_shift & row_mask), lane t >> lane_shift & (lanes - 1)
    u32   item_points, quad_points;             // from one item of a thread to the next, from four to the next four
    u32   item_shift;                           // item_points is 1 << item_shift
    u32   unit_bytes, are_quads;                // are_quads: whole threads need coordinates of items 0 and 4 only
    u32   row_axes, axes;                       // walked axes; 0 where none is needed
    u32   number_count, folds_at, rows_at, slots_at;    // bytes of shared memory
    u32   accesses_at, axes_at, numbers_at;     // among the words
    u32   is_long;                              // numbers of points do not fit 31 bits
    u32   spilled;                              // units of scratch that a block has
    u32   are_kept;                             // the rows' loads
    u32   near_at, access_count, code_count;    // near_at 0: accesses are read among the words, the list in memory
    u64   words[WORDS];
};
static_assert(sizeof(Access) == 32, "four words");
static_assert(sizeof(Numbers) <= 4096, "what every driver takes as a parameter");

}  // namespace ng::interpreter
