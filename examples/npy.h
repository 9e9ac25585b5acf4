// NumPy's .npy files, versions 1 to 3, read and written for every element type that both they and libng have.
#pragma once
#include <ng.h>

#include <cstdint>
#include <string>
#include <vector>

namespace ngtool {

struct NpyArray {
    ng_dtype             dtype = NG_F32;
    bool                 fortran_order = false;    // axis 0 fastest
    std::vector<int64_t> dims;
    std::vector<char>    data;                     // little-endian, dense
};

// Throw std::runtime_error with the path and what is wrong with it.
NpyArray read_npy(const std::string& path);
void write_npy(const std::string& path, const NpyArray& array);

}
