// Loops whose turns wait for one another: one thread. Built without contraction
// into fma, as Unisono rounds after each operation.
#include <cmath>
#include <cstddef>
#include <vector>

#include "bench/peers.h"

namespace peers {
namespace {

struct State {
  float x, y, z;
};

State field(State s) {
  return {10.0f * (s.y - s.x), s.x * (28.0f - s.z) - s.y,
          s.x * s.y - 2.6666667f * s.z};
}

State moved(State s, float h, State k) {
  return {s.x + h * k.x, s.y + h * k.y, s.z + h * k.z};
}

State step(State s) {
  constexpr float h = 1e-5f;
  const State a = field(s), b = field(moved(s, h / 2, a)),
              c = field(moved(s, h / 2, b)), d = field(moved(s, h, c));
  return {s.x + h / 6 * (a.x + 2 * (b.x + c.x) + d.x),
          s.y + h / 6 * (a.y + 2 * (b.y + c.y) + d.y),
          s.z + h / 6 * (a.z + 2 * (b.z + c.z) + d.z)};
}

/// Systems side by side, in registers.
template <size_t count>
void run(float* x, float* y, float* z, int turns) {
  float px[count], py[count], pz[count];
  for (size_t i = 0; i < count; ++i) px[i] = x[i], py[i] = y[i], pz[i] = z[i];
  for (int t = 0; t < turns; ++t) {
#pragma omp simd
    for (size_t i = 0; i < count; ++i) {
      const State s = step({px[i], py[i], pz[i]});
      px[i] = s.x, py[i] = s.y, pz[i] = s.z;
    }
  }
  for (size_t i = 0; i < count; ++i) x[i] = px[i], y[i] = py[i], z[i] = pz[i];
}

}  // namespace

void lorenz(float* x, float* y, float* z, size_t systems, int turns) {
  if (systems == 1) return run<1>(x, y, z, turns);
  for (size_t i = 0; i < systems; i += 16) run<16>(x + i, y + i, z + i, turns);
}

namespace {

struct Vec {
  float x, y, z;
};
Vec operator+(Vec a, Vec b) { return {a.x + b.x, a.y + b.y, a.z + b.z}; }
Vec operator*(float s, Vec a) { return {s * a.x, s * a.y, s * a.z}; }

Vec field(Vec s) {
  return {10 * (s.y - s.x), s.x * (28 - s.z) - s.y,
          s.x * s.y - 2.6666667f * s.z};
}
/// The transpose of the field's Jacobian at s, times v.
Vec pulled(Vec s, Vec v) {
  return {-10 * v.x + (28 - s.z) * v.y + s.y * v.z, 10 * v.x - v.y + s.x * v.z,
          -s.x * v.y - 2.6666667f * v.z};
}

}  // namespace

float lorenz_gradient(float* x, float* y, float* z, int turns, float* states) {
  const float h = 0.00001f;
  Vec s{*x, *y, *z};
  for (int t = 0; t < turns; ++t) {
    states[3 * t] = s.x;
    states[3 * t + 1] = s.y;
    states[3 * t + 2] = s.z;
    const Vec a = field(s), b = field(s + h / 2 * a), c = field(s + h / 2 * b),
              d = field(s + h * c);
    s = s + h / 6 * (a + 2 * (b + c) + d);
  }
  Vec g{1, 1, 1};
  for (int t = turns; t-- > 0;) {
    const Vec s1{states[3 * t], states[3 * t + 1], states[3 * t + 2]};
    const Vec s2 = s1 + h / 2 * field(s1), s3 = s1 + h / 2 * field(s2),
              s4 = s1 + h * field(s3);
    const Vec d = pulled(s4, h / 6 * g), c = pulled(s3, h / 3 * g + h * d),
              b = pulled(s2, h / 3 * g + h / 2 * c),
              a = pulled(s1, h / 6 * g + h / 2 * b);
    g = g + a + b + c + d;
  }
  *x = g.x;
  *y = g.y;
  *z = g.z;
  return s.x + s.y + s.z;
}

namespace {

/// Position, speed and acceleration, a tenth of a second on.
constexpr float F[3][3] = {{1, 0.1f, 0.005f}, {0, 1, 0.1f}, {0, 0, 1}};

/// moved = F x, M = F P F' + q.
inline void predict(const float x[3], const float P[3][3], float q,
                    float moved[3], float M[3][3]) {
  float FP[3][3];
  for (int i = 0; i < 3; ++i) {
    moved[i] = 0;
    for (int k = 0; k < 3; ++k) moved[i] += F[i][k] * x[k];
  }
  for (int i = 0; i < 3; ++i)
    for (int j = 0; j < 3; ++j) {
      FP[i][j] = 0;
      for (int k = 0; k < 3; ++k) FP[i][j] += F[i][k] * P[k][j];
    }
  for (int i = 0; i < 3; ++i)
    for (int j = 0; j < 3; ++j) {
      M[i][j] = i == j ? q : 0;
      for (int k = 0; k < 3; ++k) M[i][j] += FP[i][k] * F[j][k];
    }
}

}  // namespace

float kalman(const float* measured, size_t n, float q, float r) {
  float x[3] = {}, P[3][3] = {{1, 0, 0}, {0, 1, 0}, {0, 0, 1}};
  float likelihood = 0;
  for (size_t t = 0; t < n; ++t) {
    float moved[3], M[3][3];
    predict(x, P, q, moved, M);
    const float S = M[0][0] + r, e = measured[t] - moved[0];
    float K[3];
    for (int i = 0; i < 3; ++i) K[i] = M[i][0] / S;
    for (int i = 0; i < 3; ++i) {
      x[i] = moved[i] + K[i] * e;
      for (int j = 0; j < 3; ++j) P[i][j] = M[i][j] - K[i] * M[0][j];
    }
    likelihood += 0.5f * (e * e / S + std::log(S));
  }
  return likelihood;
}

float kalman_gradient(const float* measured, size_t n, float q, float r,
                      float* by_q, float* by_r) {
  struct Step {
    float M[3][3], K[3], e, S;
  };
  std::vector<Step> steps(n);
  float x[3] = {}, P[3][3] = {{1, 0, 0}, {0, 1, 0}, {0, 0, 1}};
  float likelihood = 0;
  for (size_t t = 0; t < n; ++t) {
    auto& [M, K, e, S] = steps[t];
    float moved[3];
    predict(x, P, q, moved, M);
    S = M[0][0] + r;
    e = measured[t] - moved[0];
    for (int i = 0; i < 3; ++i) K[i] = M[i][0] / S;
    for (int i = 0; i < 3; ++i) {
      x[i] = moved[i] + K[i] * e;
      for (int j = 0; j < 3; ++j) P[i][j] = M[i][j] - K[i] * M[0][j];
    }
    likelihood += 0.5f * (e * e / S + std::log(S));
  }
  float gx[3] = {}, gP[3][3] = {}, gq = 0, gr = 0;
  for (size_t t = n; t-- > 0;) {
    const auto& [M, K, e, S] = steps[t];
    float gK[3], gM[3][3], ge = e / S;
    float gS = 0.5f * (1 / S - e / S * (e / S));
    for (int i = 0; i < 3; ++i) {
      ge += K[i] * gx[i];
      gK[i] = e * gx[i];
      for (int j = 0; j < 3; ++j) {
        gK[i] -= gP[i][j] * M[0][j];
        gM[i][j] = gP[i][j];
      }
    }
    for (int i = 0; i < 3; ++i) {
      for (int j = 0; j < 3; ++j) gM[0][j] -= K[i] * gP[i][j];
      gM[i][0] += gK[i] / S;
      gS -= gK[i] * K[i] / S;
    }
    gM[0][0] += gS;
    gr += gS;
    gx[0] -= ge;
    float FM[3][3], back[3];
    for (int i = 0; i < 3; ++i) {
      gq += gM[i][i];
      back[i] = 0;
      for (int k = 0; k < 3; ++k) back[i] += F[k][i] * gx[k];
      for (int j = 0; j < 3; ++j) {
        FM[i][j] = 0;
        for (int k = 0; k < 3; ++k) FM[i][j] += F[k][i] * gM[k][j];
      }
    }
    for (int i = 0; i < 3; ++i) {
      gx[i] = back[i];
      for (int j = 0; j < 3; ++j) {
        gP[i][j] = 0;
        for (int k = 0; k < 3; ++k) gP[i][j] += FM[i][k] * F[k][j];
      }
    }
  }
  *by_q = gq;
  *by_r = gr;
  return likelihood;
}

}  // namespace peers
