// Texts to expressions and back.
#pragma once
#include "jit/build.h"

#include <string_view>

namespace ng {

// ng_parse's grammar, and by addition, so that to_text's texts are read too:
//   # to the end of the line is a comment. 0x1f. true and false are bools. a < b < c is (a < b) and (b < c).
//   Lists of extents, as [2, -1, 3*(-1)+1, _]: negative ones are lengths as in ng_reshape, inside sums in parentheses;
//   _ is the rest (NG_REST). -1 is not the rest, as it is in NumPy. Axes count from the end when negative.
//   take(x, i) take(x, i, axis)   concat([a, b], axis) concat(a, b, axis)   reshape(x, [2, _])   broadcast(x, [2, 3])
//   permute(x, [1, 0, -1]), -1: new   window(x, axis, start, count)   view(x, [dims], [strides], offset)
//   put(x, i, y, axis, FOLD)   scan(x, axis, FOLD [, exclusive] [, reverse])   segment(x, offsets, FOLD)
//   argsort(x, axis [, reverse])        FOLD: last sum prod min max
//   max(x, axes, lowest), of floats: of nothing it is -inf, where max(x, axes) is refused
//   iota([4]) iota([3, 4], axis) iota(f32, [3, 4], axis), i64 without a type   length(-1)
//   random(uniform | normal | bits, f32, [dims], key [, step])   cast_stochastic(x, f16, bits, key [, step])
//   bitcast(x, i32)   keep(x)   stop(x)   surrogate(value, path)   custom_grad(y, dy, [x, ..], [dx, ..])
//   matmul(a, b [, tf32])   conv(x, w, KEY = 1, KEY = [1, 2] ..)   conv_dx(w, dy, [dims of x], ..)
//   conv_dw(x, dy, [dims of w], ..), with stride dilate pad pad_lo pad_hi groups pad_value and tf32
//   pool(x, max | mean | l2, ..)   pool_dx(x, dy, max | mean | l2, ..), with window stride dilate pad pad_lo pad_hi
//   channel_window channel_stride channel_pad, ceil and count_pad
// A name of `names` stands for the value of the same index. Where the text uses invalid values, the first of them is
// the result. Faults are NG_E_INVALID (or what the operation said) with the column in Error::at; NG_E_LIMIT beyond
// 1 MiB or 200 nested parentheses, calls, signs.
NodeRef parse(Graph& g, std::string_view text, std::span<const std::string_view> names, std::span<const NodeRef> values);
// "u,v,eps" -> its names; NG_E_INVALID where one is empty or no identifier, occurs twice, or where they are not count.
std::vector<std::string_view> split_names(std::string_view names, size_t count);

// A text that parse reads back, with p0 p1 .. for params, t0 t1 .. for leaves, s<byte> for scalars, n1 n2 .. for
// lengths -1 -2 .., in a comment at its start; what occurs twice or grows long is named v1 v2 .. first. Tags are left
// out. Strides and places of slices that no number says, as those of an unknown length, are written but not read back.
std::string to_text(const NodeRef& e);

}  // namespace ng
