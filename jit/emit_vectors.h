// Texts of values where a thread has vectors: loads come from arrays of registers, what rows have may be one a lane.
#pragma once
#include "jit/emit_forms.h"

namespace ng::emitting {

class VectorWords : public Words {
  public:
    VectorWords(const Arranged& a, const LaunchClass& c, const Dialect& dialect, Helpers& helpers, Numbers& numbers)
        : Words(a.kernel, dialect, helpers, numbers), a_(a), is_vector_(c.width > 1), is_held_(c.form == Form::Held), is_full_(c.is_full && !c.is_split), is_tiled_(emitting::is_tiled(a, c)), is_staying_(c.is_staying), is_peeled_(c.is_peeled), at_(c.is_wide ? "i64" : "i32") {}

    std::string name(int32_t v) override;
    // The registers of a load's vectors, of vector k: blocks that stay have one at a time.
    std::string vectors(int32_t v) const { return text(is_single_ ? "em" : "m", v); }
    std::string vector(int32_t v, const std::string& k) const { return is_staying_ && !is_single_ ? vectors(v) : text(vectors(v), "[", k, "]"); }
    // A value that is kept from one pass to the next.
    std::string kept(int32_t v) const { return text(is_single_ ? "ev" : "v", v); }
    std::string expression(int32_t v) override;
    // Within a loop over lanes the vectors' axis has an index of its own.
    void enter_lanes() { in_lanes_ = true; }
    void leave_lanes() { in_lanes_ = false; }
    // The element that a thread of a peeled row has besides its vectors has registers of its own.
    void enter_single() { is_single_ = true; }
    void leave_single() { is_single_ = false; }
    bool is_single() const { return is_single_; }

    // A load that lies along another axis and comes by way of a tile.
    bool is_turned(int32_t v) const { return is_tiled_ && a_.is_tiled(v); }
    // Divisions by what a row or all points share, whose tame form is by an Inverse.
    bool is_by_inverse(int32_t v) const;
    bool is_small_enough(int32_t v) const;
    // A store's number, and whether it is rounded on the way.
    std::string stored(size_t s, bool& is_rounding);

    // Vectors go over the ends of rows; the last may be incomplete.
    bool is_flat() const { return a_.is_flat && is_vector_; }
    // From now on what is read and written need not stay in caches.
    void read_last(bool is_last) { is_last_ = is_last; }
    bool is_by_lane(int32_t v) const { return a_.is_across && a_.passes.level[size_t(v)] == Level::Row && !is_inline(v); }
    Pace pace(int32_t access) const
    {
        if (is_peeled_ && a_.moved_singly[size_t(access)]) return Pace::Strided;
        return a_.axis < 0 ? Pace::Same : pace_of(a_, access, is_vector_);
    }
    const std::string& at() const { return at_; }
    // A field of the type of indices.
    std::string count(const std::string& name, const Extent& extent);

    // Of a load or store, by what its names end in ("v3"): the pointer to a row's or a launch's first element,
    std::string base(const std::string& of, int32_t buffer, Dtype t, const Access& access, bool is_written);
    // how far from it a thread's point is, and from lane to lane.
    std::string distance(const std::string& of, const Access& access);
    std::string lane_distance(const std::string& of, const Access& access);
    // Statements: a vector into registers, and back.
    std::string fetch(int32_t v, const std::string& k);
    std::string address(int32_t v);
    std::string put(size_t s);
    std::string lane_of_store(size_t s);

  protected:
    std::string index(size_t axis) const override;

  private:
    bool is_walked(size_t axis) const { return !a_.has_rows() || a_.kernel.axes[axis].reduced; }
    std::string vector_type(Dtype t, Pace pace) const;
    // Where every vector has points, threads without a row have the last row's.
    std::string gate(int32_t buffer) const { return (is_full_ ? "if (is_row) " : "") + guard(buffer); }

    const Arranged& a_;
    bool        is_vector_, is_held_, is_full_, is_tiled_, is_staying_, is_peeled_, is_single_ = false, in_lanes_ = false, is_last_ = false;
    std::string at_;
};

}  // namespace ng::emitting
