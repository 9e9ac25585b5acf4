// The .npy format: "\x93NUMPY", version, length of the header, a Python dictionary padded to 64 bytes, the elements.
#include "npy.h"

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <memory>
#include <stdexcept>

namespace ngtool {
namespace {

struct Row { ng_dtype dtype; char kind; int bytes; };
const Row ROWS[] = {
    { NG_BOOL, 'b', 1 },
    { NG_I8, 'i', 1 },  { NG_I16, 'i', 2 }, { NG_I32, 'i', 4 }, { NG_I64, 'i', 8 },
    { NG_U8, 'u', 1 },  { NG_U16, 'u', 2 }, { NG_U32, 'u', 4 }, { NG_U64, 'u', 8 },
    { NG_F16, 'f', 2 }, { NG_F32, 'f', 4 }, { NG_F64, 'f', 8 },
};
const char   MAGIC[] = "\x93NUMPY";
const size_t HEADER_MAX = 1 << 20;

struct CloseFile { void operator()(FILE* file) const { fclose(file); } };
using File = std::unique_ptr<FILE, CloseFile>;

[[noreturn]] void fail(const std::string& path, const std::string& what) { throw std::runtime_error(path + ": " + what); }

std::string reason(const char* what) { return what + (errno ? std::string(": ") + strerror(errno) : ""); }

void read_bytes(FILE* file, void* data, size_t bytes, const std::string& path)
{
    errno = 0;
    if (bytes && fread(data, 1, bytes, file) != bytes) fail(path, ferror(file) ? reason("cannot be read") : "the file ends too early");
}

std::string read_header(FILE* file, const std::string& path)
{
    uint8_t head[8], length[4] = { 0 };
    read_bytes(file, head, sizeof head, path);
    if (memcmp(head, MAGIC, 6) != 0) fail(path, "not a .npy file");
    if (head[6] < 1 || head[6] > 3) fail(path, "version " + std::to_string(head[6]) + " of .npy is unknown");
    read_bytes(file, length, head[6] == 1 ? 2 : 4, path);
    const size_t bytes = size_t(length[0]) | size_t(length[1]) << 8 | size_t(length[2]) << 16 | size_t(length[3]) << 24;
    if (bytes > HEADER_MAX) fail(path, "a header of " + std::to_string(bytes) + " bytes");
    std::string header(bytes, 0);
    read_bytes(file, header.data(), bytes, path);
    return header;
}

// What follows 'key': in the dictionary, without leading spaces.
const char* find_value(const std::string& header, const char* key, const std::string& path)
{
    for (const char quote : { '\'', '"' }) {
        const size_t found = header.find(quote + std::string(key) + quote);
        if (found == std::string::npos) continue;
        const char* at = header.c_str() + found + strlen(key) + 2;
        while (*at == ' ') at++;
        if (*at++ != ':') break;
        while (*at == ' ') at++;
        return at;
    }
    fail(path, "the header has no " + std::string(key));
}

// '<f4' -> NG_F32; swap: the bytes of an element are the other way round.
ng_dtype parse_descr(const char* at, bool& swap, const std::string& path)
{
    if (*at != '\'' && *at != '"') fail(path, "records are not supported, arrays of plain numbers are");
    const char* const end = strchr(at + 1, *at);
    const std::string descr(at + 1, end ? end : at + 1);
    if (descr.size() < 3 || !strchr("<>|=", descr[0])) fail(path, "the type \"" + descr + "\" is unknown");
    swap = descr[0] == '>';
    for (const Row& row : ROWS)
        if (descr[1] == row.kind && descr.substr(2) == std::to_string(row.bytes)) return row.dtype;
    fail(path, "elements of type \"" + descr + "\" have no counterpart in libng; convert them with numpy's astype");
}

std::vector<int64_t> parse_shape(const char* at, const std::string& path)
{
    std::vector<int64_t> dims;
    if (*at++ != '(') fail(path, "the shape in the header is no tuple");
    for (;;) {
        while (*at == ' ' || *at == ',') at++;
        if (*at == ')') return dims;
        char* end = nullptr;
        const long long length = strtoll(at, &end, 10);
        if (end == at || length < 0 || dims.size() == NG_MAX_NDIM) fail(path, "the shape in the header is wrong");
        dims.push_back(length);
        at = *end == 'L' ? end + 1 : end;
    }
}

size_t element_bytes(ng_dtype dtype) { return (dtype >> 8 & 0xff) / 8; }

size_t data_bytes(const NpyArray& array, const std::string& path)
{
    size_t bytes = element_bytes(array.dtype);
    for (const int64_t length : array.dims)
        if (__builtin_mul_overflow(bytes, size_t(length), &bytes)) fail(path, "the shape in the header is too large");
    return bytes;
}

}

NpyArray read_npy(const std::string& path)
{
    const File file(fopen(path.c_str(), "rb"));
    if (!file) fail(path, reason("cannot be opened"));
    const std::string header = read_header(file.get(), path);
    NpyArray array;
    bool swap = false;
    array.dtype = parse_descr(find_value(header, "descr", path), swap, path);
    array.fortran_order = strncmp(find_value(header, "fortran_order", path), "True", 4) == 0;
    array.dims = parse_shape(find_value(header, "shape", path), path);

    // The file must hold what its header says before that much memory is asked for.
    const size_t bytes = data_bytes(array, path), element = element_bytes(array.dtype);
    const long start = ftell(file.get());
    if (start < 0 || fseek(file.get(), 0, SEEK_END) != 0) fail(path, "cannot be read from any place: is it a pipe?");
    if (size_t(ftell(file.get()) - start) < bytes)
        fail(path, "its shape needs " + std::to_string(bytes) + " bytes of elements, the file has fewer");
    fseek(file.get(), start, SEEK_SET);
    array.data.resize(bytes);
    read_bytes(file.get(), array.data.data(), bytes, path);
    if (swap)
        for (size_t i = 0; i < bytes; i += element) std::reverse(array.data.data() + i, array.data.data() + i + element);
    return array;
}

void write_npy(const std::string& path, const NpyArray& array)
{
    const auto row = std::find_if(std::begin(ROWS), std::end(ROWS), [&](const Row& r) { return r.dtype == array.dtype; });
    if (row == std::end(ROWS)) fail(path, "numpy has no such element type; write f32(..) around the expression");
    std::string header = std::string("{'descr': '") + (row->bytes == 1 ? '|' : '<') + row->kind + std::to_string(row->bytes);
    header += std::string("', 'fortran_order': ") + (array.fortran_order ? "True" : "False") + ", 'shape': (";
    for (const int64_t length : array.dims) header += std::to_string(length) + (array.dims.size() == 1 ? "," : ", ");
    if (array.dims.size() > 1) header.resize(header.size() - 2);
    header += "), }";
    const size_t before = 10;                                   // magic, version, length
    header.append(63 - (before + header.size()) % 64, ' ');
    header += '\n';

    const File file(fopen(path.c_str(), "wb"));
    if (!file) fail(path, reason("cannot be written"));
    const uint8_t head[4] = { 1, 0, uint8_t(header.size()), uint8_t(header.size() >> 8) };
    const bool ok = fwrite(MAGIC, 1, 6, file.get()) == 6 && fwrite(head, 1, 4, file.get()) == 4
                 && fwrite(header.data(), 1, header.size(), file.get()) == header.size()
                 && (array.data.empty() || fwrite(array.data.data(), array.data.size(), 1, file.get()) == 1)
                 && fflush(file.get()) == 0;
    if (!ok) fail(path, reason("cannot be written"));
}

}
