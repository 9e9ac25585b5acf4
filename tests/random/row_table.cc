// Every word of ng.h with its row: a new row of ops.def is drawn, run and judged without a change here.
#include "tests/random/row_table.h"

#include <type_traits>

namespace programs {
namespace {

template <class Function>
Row row_of(Row row, Function* call)
{
    if constexpr (std::is_same_v<Function, ng_expr*(ng_expr*)>) row.one = call;
    else if constexpr (std::is_same_v<Function, ng_expr*(ng_expr*, ng_expr*)>) row.two = call;
    else if constexpr (std::is_same_v<Function, ng_expr*(ng_expr*, ng_expr*, ng_expr*)>) row.three = call;
    else if constexpr (std::is_same_v<Function, ng_expr*(ng_expr*, ng_axes, uint32_t)>) row.reduce = call;
    else row.norm = call;
    return row;
}

}  // namespace

Table::Table()
{
    enum : bool { Same, Bool };
#define MAP(name, arity, domain, result, expression, derivative, ulp, numpy, summary) \
    rows.push_back(row_of({#name, RowClass::Map, arity, Domain::domain, result, ulp, column_of(numpy)}, ng_##name));
#define FOLD(name, ...) rows.push_back(row_of({#name, RowClass::Fold, 1, Domain::Any, false, 0, {}}, ng_##name));
#define STAT(name, ...) rows.push_back(row_of({#name, RowClass::Stat, 1, Domain::Any, false, 0, {}}, ng_##name));
#define NORM(name, ...) rows.push_back(row_of({#name, RowClass::Norm, 1, Domain::Any, false, 0, {}}, ng_##name));
#include "jit/ops.def"
    for (int i = 0; i < int(rows.size()); i++) {
        const RowClass kind = rows[size_t(i)].kind;
        (kind == RowClass::Map ? maps : kind == RowClass::Norm ? norms : reductions).push_back(i);
    }
}

}  // namespace programs
