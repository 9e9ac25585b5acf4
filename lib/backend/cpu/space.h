// A kernel's axes in the order of memory, those that are walked as one joined.
#pragma once
#include "lib/backend/cpu/plan.h"
#include "lib/backend/cpu/saturated.h"

#include <cstdint>

namespace ng::cpu {

// Extents may be as large as numbers are, where strides are 0 or another extent is.
inline int64_t rounded_up(int64_t n, int64_t unit) { return divided_up(n, unit) * unit; }
inline int64_t magnitude(int64_t n) { return n < 0 ? -n : n; }

struct SpaceAxis {
    int64_t  extent;
    int64_t* strides;                 // [accesses]; of those that do not follow it, along its last part
};

// Whether the access walks both as one.
inline bool are_one(const SpaceAxis& outer, const SpaceAxis& inner, int32_t access)
{
    return outer.strides[access] == times(inner.strides[access], inner.extent);
}

// How a block of several rows lies in what an access walks; None: not so that it can be read.
inline Lie lie_of(const SpaceAxis& outer, const SpaceAxis& inner, int32_t access)
{
    if (are_one(outer, inner, access)) return Lie::Whole;
    if (outer.strides[access] == 0) return Lie::Again;
    return inner.strides[access] == 0 ? Lie::Each : Lie::None;
}

// Axes of more than one point, joined ones as wholes and as parts.
class Axes {
  public:
    int count() const { return count_; }
    const SpaceAxis& operator[](int axis) const { return axes_[axis]; }
    const SpaceAxis* begin() const { return axes_; }
    const SpaceAxis* end() const { return axes_ + count_; }
    void add(const SpaceAxis& axis) { axes_[count_++] = axis; }
    // Insertion sort, so that axes with equal strides stay in their order: the widest strides become the outermost loops.
    void sort(const Program& p);
    // Neighbours that all accesses that decide walk as one become one.
    void join(const Program& p);

    int parts_of(int axis) const { return ends_[axis] - first_of(axis); }
    const SpaceAxis& part_of(int axis, int part) const { return parts_[first_of(axis) + part]; }
    // Whether the access walks the axis as one, too.
    bool is_followed(int axis, int32_t access) const;

  private:
    int first_of(int axis) const { return axis ? ends_[axis - 1] : 0; }

    int  count_ = 0;
    SpaceAxis axes_[MAX_AXES], parts_[MAX_AXES];
    int  ends_[MAX_AXES];             // of an axis' parts
};

// How blocks go through a space.
struct Way {
    bool    is_columns = true;
    int     axis = -1;                // of the kept ones in columns, else of the reduced ones; -1: the space has none
    int64_t block = 0;
    int     repeated = -1;            // the reduced axis, points of which a block has several
    int     stacked = -1;             // as repeated, of the kept axes, where nothing is reduced
    int64_t repeats = 1;
};

struct Space {
    // values: of the program's lengths. box: null for the whole space. memory: what make_plan was given; moves on.
    Space(const Program& program, const int64_t* values, const Box* box, int64_t*& memory);

    const Axes& along(const Way& way) const { return way.is_columns ? kept : reduced; }

    Axes     kept, reduced;
    int64_t* offset;                  // [accesses and axes of the program]: 0 behind the accesses
    double   rows = 1, length = 1;
};

// Writes the plan's loops, and where they go. is_outermost: blocks, of columns.
void lay_loops(Plan& plan, const Program& program, const Space& space, const Way& way, bool is_outermost, int64_t* memory);

}  // namespace ng::cpu
