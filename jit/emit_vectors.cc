// Prints loads and stores of vectors: one access where elements lie side by side, one an element where they do not.
#include "jit/emit_vectors.h"

namespace ng::emitting {

std::string VectorWords::name(int32_t v)
{
    if (is_held_ && a_.kept_from[size_t(v)] >= 0) return kept(v) + (is_staying_ && !is_single_ ? "[g + k][j]" : "[k][j]");
    return Words::name(v) + (is_by_lane(v) ? "[j]" : "");
}

std::string VectorWords::expression(int32_t v)
{
    const Value& a = value(v);
    if (a.kind == ValueKind::Fold && a_.passes.running[size_t(v)].kind == Passes::Kind::Total)
        return text("all_of_", name_of(compute_of(a.type)), "(m", a_.passes.running[size_t(v)].m, a_.is_across ? "[j])" : ")");
    if (a.kind == ValueKind::Fold && a_.passes.is_running(size_t(v)))
        return text("about_", name_of(compute_of(a.type)), "(m", v, a_.is_across ? "[j]" : "", ", ", name(a_.passes.running[size_t(v)].m), ")");
    if (takes_tame_forms_ && is_by_inverse(v)) return text(is_small_enough(v) ? "half_quotient_of(" : "quotient_of(", name(a.args[0]), ", d", v, is_by_lane(a.args[1]) ? "[j]" : "", ", is_tame)");
    if (a.kind != ValueKind::Load || !a_.is_full(v)) return Words::expression(v);
    return decoded(text(vector(v, "k"), ".e[", pace(a.access) == Pace::Same ? "0" : "j", "]"), a.type);
}

bool VectorWords::is_by_inverse(int32_t v) const
{
    const Value& a = value(v);
    return a.kind == ValueKind::Map && a.op == Op::div && a_.is_full(v) && a_.passes.wanted[size_t(v)] && !a_.is_full(a.args[1]) && compute_of(a.type) == Dtype::f32;
}

// Shares of exponentials that only f16 is made of.
bool VectorWords::is_small_enough(int32_t v) const
{
    if (value(value(v).args[0]).op != Op::exp) return false;
    bool is_half = true;
    for (const Value& user : kernel_.values)
        if (std::ranges::find(user.args, v) != user.args.end()) is_half &= user.kind == ValueKind::Convert && user.type == Dtype::f16;
    return is_half && std::ranges::none_of(kernel_.stores, [v](const StoreTo& s) { return s.value == v; });
}

std::string VectorWords::index(size_t axis) const
{
    const std::string i = Words::index(axis);
    return in_lanes_ && int32_t(axis) == a_.axis && !is_flat() ? "(" + i + " + j)" : i;
}

std::string VectorWords::count(const std::string& name, const Extent& extent)
{
    return numbers_.add(name, {NumberKind::Length, at_ == "i64" ? Dtype::i64 : Dtype::i32, 0, extent, 0});
}

std::string VectorWords::base(const std::string& of, int32_t buffer, Dtype t, const Access& access, bool is_written)
{
    numbers_.end_line();
    std::string out = pointer(buffer, t, is_written) + " + (" + numbers_.length("offset_" + of, access.offset);
    for (size_t x = 0; x < access.strides.size(); x++)
        if (!is_walked(x) && !access.strides[x].is(0)) out += text(" + ", index(x), " * ", numbers_.length(text("stride_", of, "_", x), access.strides[x]));
    return out + ")";
}

std::string VectorWords::distance(const std::string& of, const Access& access)
{
    std::string out;
    if (is_flat() && a_.unit[size_t(&access - kernel_.accesses.data())] == a_.axis) return "point";
    for (size_t x = 0; x < access.strides.size(); x++) {
        if (!is_walked(x) || access.strides[x].is(0)) continue;
        const bool is_unit = access.strides[x].is(1) || (int32_t(x) == a_.axis && is_vector_ && a_.unit[size_t(&access - kernel_.accesses.data())] == a_.axis);
        out += (out.empty() ? "" : " + ") + index(x);
        if (!is_unit) out += " * " + count(text("stride_", of, "_", x), access.strides[x]);
    }
    return out.empty() ? "0" : out;
}

std::string VectorWords::lane_distance(const std::string& of, const Access& access)
{
    const Extent& stride = access.strides[size_t(a_.axis)];
    if (stride.is(0)) return "0";
    // Along a kept axis strides are fields already, of rows' pointers.
    const std::string name = text("stride_", of, "_", a_.axis);
    return "j * " + (a_.is_across ? numbers_.length(name, stride) : count(name, stride));
}

std::string VectorWords::vector_type(Dtype t, Pace p) const { return text("Vector<", memory_name(t), p == Pace::Same ? ", 1>" : ", WIDTH>"); }

std::string VectorWords::fetch(int32_t v, const std::string& k)
{
    const Value& a = value(v);
    const Access& access = kernel_.accesses[size_t(a.access)];
    const std::string of = "v" + number(v), at = distance(of, access), to = vector(v, k);
    if (is_turned(v)) return text(to, " = turned_of<SIDE, WIDTH>(tile", v, ", row, column);");
    if (a_.axis < 0) return text(to, ".e[0] = p_", of, "[", at, "];");
    if (is_flat() && pace(a.access) == Pace::Strided) return text(to, ".e[j] = p_", of, "[", at, "];");
    if (is_flat()) return text(to, " = first_of<WIDTH>(p_", of, " + point, end - point);");
    switch (pace(a.access)) {
    case Pace::Same: return text(to, ".e[0] = p_", of, "[", at, "];");
    case Pace::Unit:
        if (is_last_) return text(to, " = last_of<", vector_type(a.type, Pace::Unit), ">(p_", of, " + (", at, "));");
        return text(to, " = *(const ", vector_type(a.type, Pace::Unit), "*)(p_", of, " + (", at, "));");
    case Pace::Strided: break;
    }
    return text("for (i32 j = 0; j < WIDTH; j++) ", to, ".e[j] = p_", of, "[", at, " + ", lane_distance(of, access), "];");
}

// Of a vector.
std::string VectorWords::address(int32_t v)
{
    const std::string of = "v" + number(v);
    return text("p_", of, " + (", distance(of, kernel_.accesses[size_t(value(v).access)]), ")");
}

std::string VectorWords::stored(size_t s, bool& is_rounding)
{
    const int32_t v = kernel_.stores[s].value;
    const Value& a = value(v);
    is_rounding = a.type == Dtype::f16 || a.type == Dtype::bf16;
    if (!is_rounding) return encoded(name(v), a.type);
    const bool is_raw = a.kind == ValueKind::Convert && compute_of(value(a.args[0]).type) == Dtype::f32 && !is_inline(v);
    return name(is_raw && a_.is_full(a.args[0]) == a_.is_full(v) ? a.args[0] : v);
}

// What a lane does with its element.
std::string VectorWords::lane_of_store(size_t s)
{
    const StoreTo& t = kernel_.stores[s];
    const Access& access = kernel_.accesses[size_t(t.access)];
    bool is_rounding = false;
    const std::string of = "s" + number(int64_t(s)), number = stored(s, is_rounding);
    if (pace(t.access) == Pace::Unit) return text("o", s, is_rounding ? "[j] = " : ".e[j] = ", number, ";");
    const std::string x = is_rounding ? text("nearest_", name_of(value(t.value).type), "(", number, ")") : number;
    // The axis's own index counts the lane in.
    return text(gate(t.buffer), "p_", of, "[", distance(of, access), a_.is_across && a_.axis >= 0 ? " + " + lane_distance(of, access) : "", "] = ", x, ";");
}

std::string VectorWords::put(size_t s)
{
    const StoreTo& t = kernel_.stores[s];
    const std::string of = "s" + number(int64_t(s));
    bool is_rounding = false;
    stored(s, is_rounding);
    const Dtype type = value(t.value).type;
    const std::string vector = is_rounding ? text("packed_", name_of(type), "(o", s, ")") : text("o", s);
    if (is_flat()) return text(guard(t.buffer), "put_first<WIDTH>(p_", of, " + point, ", vector, ", end - point);");
    return text(gate(t.buffer), is_last_ ? "put_last(p_" : "put(p_", of, " + (", distance(of, kernel_.accesses[size_t(t.access)]), "), ", vector, ");");
}

}  // namespace ng::emitting
