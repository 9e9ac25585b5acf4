// Source text of a fused kernel for a device, and the numbers that each launch of it passes.
#pragma once
#include "jit/dialect.h"
#include "jit/kernel.h"

#include <array>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

namespace ng {

// The most threads of a block; a launch may use fewer, a power of two of them.
inline constexpr int32_t BLOCK_THREADS = 256;

enum class NumberKind : uint8_t {
    Length,      // extent, an i64
    Constant,    // bits: what the field holds
    Scalar,      // at byte `bits` of the run's scalars
    PerBlock,    // an i32: rows that a block works on at once, a power of two, at most as many as its threads
    Factor,      // with Shift: extent as what divides by it (Granlund & Montgomery 1994)
    Shift,       // an i32
    Cut,         // Geometry::cuts[bits]
    Scratch,     // a u64: the address of the launch's scratch memory
};

// One field of the struct that is a kernel's last parameter.
struct NumberField {
    NumberKind kind;
    Dtype      type = Dtype::i64;
    uint32_t   offset = 0;           // in bytes, from the struct's first
    Extent     extent = 0;
    int64_t    bits = 0;
};

// Extents, strides, constants and scalars are numbers, so kernels that differ in them alone have one text: it is the key
// of a cache. Whether a stride is 0 is structure (what a row or all points share is loaded once).
//
// The function is called `fused`. Its parameters are a pointer for each of the kernel's buffers, to the buffer's first
// element, then the struct by value. A buffer that is only stored to may be null: an output that is not wanted this time.
// Without rows a grid of any size walks all points. With rows, each block takes per_block rows at once and thread t works
// on row t mod per_block: 1 where folds run along the fastest axis, a warp's width where they run across it, as many as
// threads where rows are short. Nothing is launched where `rows` is 0.
struct KernelSource {
    std::string text;                // to be compiled after the dialect's prelude
    std::vector<NumberField> numbers;
    uint32_t number_bytes = 0;       // of the struct
    int32_t  buffers = 0;
    int32_t  functions = 1;
    bool     has_rows = false;
    Extent   rows = 1, points = 1;   // points: of a row; without rows: of all

    uint32_t parameter_bytes() const { return uint32_t(buffers) * 8 + number_bytes; }
};

// NG_E_LIMIT where the kernel reads its space more than 32 times.
KernelSource emit(const Kernel& kernel, const Dialect& dialect);

// The struct of one launch; out has number_bytes. variables: as Extent::value takes them.
void fill_numbers(const KernelSource& source, std::span<const int64_t> variables, const void* scalars, int32_t per_block, void* out);

// ---- CUDA: several texts a kernel, each for a class of launches ---------------------------------------------------------

enum class Form : uint8_t {
    Points,      // no folds: a thread has a few vectors of points
    Held,        // a row's threads keep its points in registers and read them once
    Walked,      // a row's threads read its points once a pass
    Columns,     // folds across the fastest kept axis: a thread has a vector of rows
};

// Which of a kernel's texts a launch takes: what of lengths, alignment and distances the text depends on.
struct LaunchClass {
    Form    form = Form::Points;
    uint8_t width = 1;           // elements that an access moves where they lie side by side
    uint8_t held = 1;            // vectors of a thread at once
    bool    is_wide = false;     // 64-bit indices
    bool    is_split = false;    // a row's points are spread over blocks, whose folds meet in scratch memory: several functions,
                                 // or, where they are held, one for clusters of blocks
    bool    is_full = false;     // held: every vector of every thread has its points
    bool    is_large = false;    // held: by a block that fills a processor, of lengths that are known
    bool    is_staying = false;  // held in shared memory, one row or column after the other, with the next one's loads on their way
    bool    is_ring = false;     // staying: in three places by turns, so that one comes and one goes while a third is folded
    bool    is_keeping = false;  // staying: what is dear to compute stays in registers from one walk to the next
    bool    is_peeled = false;   // rows begin anywhere: vectors with their first aligned element, and a thread has one element before or behind those
    int8_t  log_lanes = -1;      // held: of the threads that share a row, where all launches have as many; -1: said at launch
    int8_t  log_parts = 0;       // staying: of the blocks of a cluster,
    int8_t  log_line = 0;        // and of the vectors of columns side by side
    bool operator==(const LaunchClass&) const = default;
};
std::string text_of(const LaunchClass& c);       // "held 4x4": for explain and names

struct DeviceTraits {
    int32_t compute = 80;        // 90: sm_90
    int32_t units = 1;           // multiprocessors
    int32_t shared_bytes = 0;    // the most that a block may be launched with
};

inline constexpr int MAX_LAUNCHES = 9, MAX_CUTS = 10;

// How one run of a kernel is launched. Function k of the text is called `fused` for k = 0, then `fused_1`, `fused_2` ..;
// they are launched one after another, each with all of the kernel's parameters.
struct Geometry {
    int32_t  which = -1;                 // of KernelFamily::classes()
    int32_t  launches = 0;               // 0: there is nothing to do
    // Blocks beyond MOST_BLOCKS stand in several rows of as many; what is left over in the last has nothing to do.
    static constexpr uint64_t MOST_BLOCKS = (uint64_t(1) << 31) - 1;
    struct Launch { uint64_t blocks = 1; uint32_t threads = 1, cluster = 1, shared_bytes = 0; };
    std::array<Launch, MAX_LAUNCHES> launch;
    uint64_t scratch_bytes = 0;          // any content; 256-byte aligned; nobody else's while the launches run
    std::array<int64_t, MAX_CUTS> cuts{};
};

namespace emitting { struct Arrangements; struct Bounds; }

// All that is known of a kernel before it runs: the texts it may need whatever its lengths and addresses turn out to be,
// and which of them a launch takes.
class KernelFamily {
  public:
    // most: the greatest lengths that it will be asked for, by variable; lengths beyond them have none.
    KernelFamily(const Kernel& kernel, const Dialect& dialect, DeviceTraits device, std::span<const int64_t> most = {});
    ~KernelFamily();
    KernelFamily(KernelFamily&&) noexcept;
    KernelFamily& operator=(KernelFamily&&) noexcept;

    std::span<const LaunchClass> classes() const { return classes_; }
    KernelSource source(size_t which) const;     // NG_E_LIMIT as emit()
    // Allocates nothing. addresses: of the buffers' first elements, in the kernel's numbering.
    Geometry choose(std::span<const int64_t> variables, std::span<const uint64_t> addresses) const;
    // At least what choose() says for these lengths and all below, at any addresses.
    uint64_t scratch_bytes(std::span<const int64_t> most) const;

  private:
    void list(std::span<const int64_t> most);
    void list_known(const emitting::Bounds& bounds);
    void list_staying(emitting::Arrangements& all, const emitting::Bounds& bounds);
    int64_t rows_of(std::span<const int64_t> variables) const;
    int32_t find(const LaunchClass& c) const;

    std::unique_ptr<const emitting::Arrangements> arranged_;
    const Dialect* dialect_;
    DeviceTraits   device_;
    std::vector<LaunchClass> classes_;
};

void fill_numbers(const KernelSource& source, std::span<const int64_t> variables, const void* scalars, const Geometry& geometry, uint64_t scratch, void* out);

}  // namespace ng
