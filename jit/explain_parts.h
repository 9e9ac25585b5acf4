// What an explanation is put together from: JSON as it grows, a kernel's lines, the graph's nodes behind each step.
#pragma once
#include "jit/plan.h"
#include "jit/snapshot.h"

#include <string>

namespace ng {

// Writes one JSON text; commas and escapes are its own care. Bytes that are no UTF-8 become U+FFFD.
class Json {
  public:
    Json& open(char bracket);                    // { or [
    Json& close(char bracket);
    Json& key(const char* name);
    Json& key(const std::string& name);
    Json& value(const std::string& text);
    Json& value(const char* text) { return value(std::string(text)); }
    Json& value(bool truth) { return raw(truth ? "true" : "false"); }
    Json& value(int64_t number) { return raw(std::to_string(number)); }
    Json& value(uint64_t number) { return raw(std::to_string(number)); }
    Json& value(int32_t number) { return value(int64_t(number)); }
    Json& value(uint32_t number) { return value(uint64_t(number)); }
    Json& value(double number);                  // those that JSON has no word for as texts
    Json& value(const Extent& extent);           // a number, or a text of lengths
    Json& values(std::span<const Extent> extents);
    template <class T> Json& member(const char* name, const T& v) { return key(name).value(v); }
    const std::string& str() const { return out_; }

  private:
    Json& raw(const std::string& text);
    void  quote(const std::string& text);
    std::string out_;
    bool comma_ = false;
};

// "v3 f32 = add v1 v2"; buffers: a step's, which the kernel's numbers are places in.
std::string line_of_value(const Kernel& kernel, size_t value, std::span<const int32_t> buffers);
std::string line_of_store(const Kernel& kernel, size_t store, std::span<const int32_t> buffers);
// A constant's number, as text; "inf", "-inf" and "nan" where it is none.
double number_of_bits(Dtype t, int64_t bits);

// The numbers in the snapshot of what each step computes, ascending; followed from the outputs down. A node that
// several steps compute is in each.
std::vector<std::vector<uint32_t>> nodes_of_steps(const Plan& plan, const Snapshot& graph);

}  // namespace ng
