// Measures what this processor can do at most. Answers a line of JSON for each line "KIND THREADS" of the standard input:
// fp32 and bf16 are fused multiply-adds on registers alone (GFLOP/s), read is streaming reads of memory (GB/s).
// Each figure is the best of many short runs, in which all threads begin together.
#include <immintrin.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { ROUNDS = 20000 };
#define SECONDS 0.7 // of short runs for a figure: one of them is undisturbed
#define BYTES ((size_t)512 << 20) // many times the last-level cache

static float *memory;
static volatile float sink;
static pthread_barrier_t gate;
static int threads, kind; // kind: 0 fp32, 1 bf16, 2 read
static double work[64];

static double now(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return t.tv_sec + 1e-9 * t.tv_nsec;
}

// Independent chains hide the latency: 24 in the 32 registers of AVX-512, 12 in the 16 of AVX2. The operands are zero.
#define CHAINS12(op, r) op r "0\n" op r "1\n" op r "2\n" op r "3\n" op r "4\n" op r "5\n" op r "6\n" op r "7\n" op r "8\n" op r "9\n" op r "10\n" op r "11\n"
#define CHAINS24(op, r)                                                                                                     \
  CHAINS12(op, r) op r "12\n" op r "13\n" op r "14\n" op r "15\n" op r "16\n" op r "17\n" op r "18\n" op r "19\n" op r "20\n" \
      op r "21\n" op r "22\n" op r "23\n"

__attribute__((noinline)) static double fma512(void) {
  __asm__ volatile("vzeroall\n vpxorq %%zmm31, %%zmm31, %%zmm31\n" ::: "memory");
  for (int r = 0; r < ROUNDS; r++) __asm__ volatile(CHAINS24("vfmadd231ps %%zmm31, %%zmm31, %%", "zmm") ::: "memory");
  return 2.0 * 16 * 24 * ROUNDS;
}

__attribute__((noinline)) static double dot512(void) {
  __asm__ volatile("vzeroall\n vpxorq %%zmm31, %%zmm31, %%zmm31\n" ::: "memory");
  for (int r = 0; r < ROUNDS; r++) __asm__ volatile(CHAINS24("vdpbf16ps %%zmm31, %%zmm31, %%", "zmm") ::: "memory");
  return 4.0 * 16 * 24 * ROUNDS;
}

__attribute__((noinline)) static double fma256(void) {
  __asm__ volatile("vzeroall\n" ::: "memory");
  for (int r = 0; r < ROUNDS; r++) __asm__ volatile(CHAINS12("vfmadd231ps %%ymm15, %%ymm15, %%", "ymm") ::: "memory");
  return 2.0 * 8 * 12 * ROUNDS;
}

__attribute__((target("avx2"))) static double sweep(int id) {
  size_t n = BYTES / threads / 128 * 128;
  const char *p = (const char *)memory + id * n;
  __m256 a = _mm256_setzero_ps(), b = a, c = a, d = a;
  for (size_t i = 0; i < n; i += 128) {
    a = _mm256_xor_ps(a, _mm256_load_ps((const float *)(p + i)));
    b = _mm256_xor_ps(b, _mm256_load_ps((const float *)(p + i + 32)));
    c = _mm256_xor_ps(c, _mm256_load_ps((const float *)(p + i + 64)));
    d = _mm256_xor_ps(d, _mm256_load_ps((const float *)(p + i + 96)));
  }
  a = _mm256_xor_ps(_mm256_xor_ps(a, b), _mm256_xor_ps(c, d));
  sink = ((float *)&a)[0];
  return n;
}

static double once(int id) {
  if (kind == 2) return sweep(id);
  if (kind == 1) return dot512();
  return __builtin_cpu_supports("avx512f") ? fma512() : fma256();
}

static void *run(void *arg) {
  int id = (int)(long)arg;
  static double best, start, begin;
  static int more;
  if (id == 0) best = 0, begin = now(), more = 1;
  for (;;) {
    pthread_barrier_wait(&gate);
    if (id == 0) start = now();
    pthread_barrier_wait(&gate);
    work[id] = once(id);
    pthread_barrier_wait(&gate);
    if (id == 0) {
      double seconds = now() - start, total = 0;
      for (int i = 0; i < threads; i++) total += work[i];
      if (total / seconds > best) best = total / seconds;
      more = now() - begin < SECONDS;
    }
    pthread_barrier_wait(&gate);
    if (!more) break;
  }
  if (id == 0) printf("{\"rate\": %.3f}\n", best / 1e9);
  return NULL;
}

int main(void) {
  if (!(memory = aligned_alloc(4096, BYTES))) return 1;
  memset(memory, 1, BYTES);
  printf("{\"version\": \"%s\"}\n", __VERSION__);
  fflush(stdout);
  char name[8];
  while (scanf("%7s %d", name, &threads) == 2 && threads >= 1 && threads <= 64) {
    kind = !strcmp(name, "read") ? 2 : !strcmp(name, "bf16");
    if (kind == 1 && !__builtin_cpu_supports("avx512bf16")) {
      printf("{\"rate\": 0}\n");
    } else {
      pthread_t t[64];
      pthread_barrier_init(&gate, NULL, threads);
      for (long i = 1; i < threads; i++) pthread_create(t + i, NULL, run, (void *)i);
      run((void *)0);
      for (int i = 1; i < threads; i++) pthread_join(t[i], NULL);
      pthread_barrier_destroy(&gate);
    }
    fflush(stdout);
  }
}
