// ReLU, then the mean of each 2x2 window, as one operator of MXNet: the array between
// the two is never written. A last odd row or column is not read, as in MXNet's pooling.
#include <mxnet/lib_api.h>

using namespace mxnet::ext;
using Attributes = std::unordered_map<std::string, std::string>;

struct Sides {  // planes of height x width
  int64_t planes, height, width;
  explicit Sides(const MXTensor& x)
      : planes(x.shape[0] * x.shape[1]), height(x.shape[2]), width(x.shape[3]) {}
};

// inputs: x (n, c, h, w); outputs: y (n, c, h / 2, w / 2)
MXReturnValue forward(const Attributes&, std::vector<MXTensor>* inputs,
                      std::vector<MXTensor>* outputs, const OpResource&) {
  const Sides s(inputs->at(0));
  const float* x = inputs->at(0).data<float>();
  float* y = outputs->at(0).data<float>();
  const int64_t rows = s.height / 2, columns = s.width / 2;
  for (int64_t p = 0; p < s.planes; ++p)
    for (int64_t i = 0; i < rows; ++i) {
      const float* above = x + (p * s.height + 2 * i) * s.width;
      const float* below = above + s.width;
      float* out = y + (p * rows + i) * columns;
      for (int64_t j = 0; j < columns; ++j) {
        float sum = 0;
        for (int64_t k = 2 * j; k < 2 * j + 2; ++k)
          sum += (above[k] > 0 ? above[k] : 0) + (below[k] > 0 ? below[k] : 0);
        out[j] = sum / 4;
      }
    }
  return MX_SUCCESS;
}

// inputs: the gradient of y, x, y; outputs: the gradient of x
MXReturnValue backward(const Attributes&, std::vector<MXTensor>* inputs,
                       std::vector<MXTensor>* outputs, const OpResource&) {
  const Sides s(inputs->at(1));
  const float *dy = inputs->at(0).data<float>(), *x = inputs->at(1).data<float>();
  float* dx = outputs->at(0).data<float>();
  const int64_t rows = s.height / 2, columns = s.width / 2;
  for (int64_t p = 0; p < s.planes; ++p)
    for (int64_t i = 0; i < s.height; ++i) {
      const float* in = x + (p * s.height + i) * s.width;
      const float* from = dy + (p * rows + i / 2) * columns;
      float* out = dx + (p * s.height + i) * s.width;
      const bool read = i < 2 * rows;
      for (int64_t j = 0; j < s.width; ++j)
        out[j] = read && j < 2 * columns && in[j] > 0 ? from[j / 2] / 4 : 0;
    }
  return MX_SUCCESS;
}

MXReturnValue count(const Attributes&, int* inputs, int* outputs) {
  *inputs = *outputs = 1;
  return MX_SUCCESS;
}

MXReturnValue type(const Attributes&, std::vector<int>* in, std::vector<int>* out) {
  in->at(0) = out->at(0) = kFloat32;
  return MX_SUCCESS;
}

MXReturnValue shape(const Attributes&, std::vector<std::vector<unsigned int>>* in,
                    std::vector<std::vector<unsigned int>>* out) {
  out->at(0) = in->at(0);
  for (int axis : {2, 3}) out->at(0).at(axis) /= 2;
  return MX_SUCCESS;
}

REGISTER_OP(relu_pool)
    .setForward(forward, "cpu")
    .setBackward(backward, "cpu")
    .setParseAttrs(count)
    .setInferType(type)
    .setInferShape(shape);

MXReturnValue initialize(int version) {
  return version >= 10900 ? MX_SUCCESS : MX_FAIL;
}
