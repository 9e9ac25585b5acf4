// What the build made of the shipped kernels, as texts that modules are loaded from.
#include "lib/backend/cuda/images.h"

#include "kernels/shipped.h"

namespace ng::cuda {

std::string_view basic_image() { return {reinterpret_cast<const char*>(ng_basic_image), ng_basic_image_bytes}; }
std::string_view interpreter_image() { return {reinterpret_cast<const char*>(ng_interpreter_image), ng_interpreter_image_bytes}; }
std::string_view stock_image() { return {reinterpret_cast<const char*>(ng_stock_image), ng_stock_image_bytes}; }

namespace {

struct Bytes {
    const unsigned char* bytes;
    unsigned long long   count;
    const int*           archs;
};
// Nothing for images that no build has.
Bytes shipped(gemm::Image image)
{
    switch (image) {
    case gemm::Image::Sm90Half: return {ng_gemm_sm90_half_image, ng_gemm_sm90_half_image_bytes, ng_gemm_sm90_half_image_archs};
    case gemm::Image::Sm90Byte: return {ng_gemm_sm90_byte_image, ng_gemm_sm90_byte_image_bytes, ng_gemm_sm90_byte_image_archs};
    case gemm::Image::Sm90Wide: return {ng_gemm_sm90_wide_image, ng_gemm_sm90_wide_image_bytes, ng_gemm_sm90_wide_image_archs};
    case gemm::Image::Mma: return {ng_gemm_mma_image, ng_gemm_mma_image_bytes, ng_gemm_mma_image_archs};
    case gemm::Image::Sm90Listed: return {ng_gemm_sm90_listed_image, ng_gemm_sm90_listed_image_bytes, ng_gemm_sm90_listed_image_archs};
    case gemm::Image::Sm90Boxed: return {ng_gemm_sm90_boxed_image, ng_gemm_sm90_boxed_image_bytes, ng_gemm_sm90_boxed_image_archs};
    case gemm::Image::MmaListed: return {ng_gemm_mma_listed_image, ng_gemm_mma_listed_image_bytes, ng_gemm_mma_listed_image_archs};
    default: return {nullptr, 0, nullptr};
    }
}

bool has_code(const int* archs, int compute)
{
    // Code for 8.0 runs on 8.6, not on 9.0.
    for (const int* arch = archs; *arch; arch++)
        if (*arch / 10 == compute / 10 && *arch <= compute) return true;
    return false;
}

}  // namespace

bool has_basic_code(int compute) { return has_code(ng_basic_image_archs, compute); }
bool has_interpreter_code(int compute) { return has_code(ng_interpreter_image_archs, compute); }
bool has_stock_code(int compute) { return ng_stock_image_bytes > 0 && has_code(ng_stock_image_archs, compute); }

std::string_view gemm_image(gemm::Image image)
{
    const Bytes s = shipped(image);
    return {reinterpret_cast<const char*>(s.bytes), s.count};
}
bool has_gemm_code(gemm::Image image, int compute)
{
    const Bytes s = shipped(image);
    return s.count > 0 && has_code(s.archs, compute);
}

}  // namespace ng::cuda
