// Measures what this processor can do at most. Answers a line of JSON for each line "KIND THREADS" of the standard input:
// fp32 and bf16 are fused multiply-adds on registers alone (GFLOP/s), read is streaming reads of memory (GB/s).
// Each figure is the best of many short runs, in which all threads begin together.
//
// Memory is in huge pages: with small ones the translation of addresses would be measured. Reads go through several streams at once on
// each thread, with as many lines in flight as the processor takes, and every way of reading counts: the limit is the most that any reaches.
#define _GNU_SOURCE
#include <immintrin.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>

enum { ROUNDS = 20000 };
#define SECONDS 0.7 // of short runs for a figure: one of them is undisturbed
#define READ_SECONDS 2.5 // reads are longer, and there are several ways of them
#define BYTES ((size_t)512 << 20) // many times the last-level cache
#define WINDOW ((size_t)64 << 20) // what a run reads: some milliseconds; the next run reads what follows
#define PAGE ((size_t)2 << 20)    // a huge page

static char *memory;
static volatile long long sink;
static pthread_barrier_t gate;
static int threads, kind, way, window; // kind: 0 fp32, 1 bf16, 2 read
static double work[32];

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

// Ways of reading a thread's share: how many streams go through it side by side, and how far ahead of a load its line is asked for (0 not at all).
static const struct {
  int streams, ahead;
} ways[] = {{1, 0}, {1, 1024}, {2, 0}, {2, 1024}, {4, 0}, {4, 1024}, {8, 0}, {8, 512}};
enum { WAYS = sizeof ways / sizeof *ways };

// Each step reads STEP bytes of every stream.
enum { STEP = 256 };

__attribute__((target("avx512f"))) static void step512(const char *p, __m512i *x) {
  for (int i = 0; i < 4; i++) x[i] = _mm512_xor_si512(x[i], _mm512_load_si512(p + 64 * i));
}

__attribute__((target("avx512f"))) static double sweep512(const char *p, size_t n, int streams, int ahead) {
  __m512i x[4] = {_mm512_setzero_si512(), _mm512_setzero_si512(), _mm512_setzero_si512(), _mm512_setzero_si512()};
  size_t share = n / streams / STEP * STEP;
  for (size_t i = 0; i < share; i += STEP)
    for (int s = 0; s < streams; s++) {
      const char *q = p + s * share + i;
      if (ahead)
        for (int k = 0; k < STEP; k += 64) _mm_prefetch(q + ahead + k, _MM_HINT_T0);
      step512(q, x);
    }
  x[0] = _mm512_xor_si512(_mm512_xor_si512(x[0], x[1]), _mm512_xor_si512(x[2], x[3]));
  sink = _mm_cvtsi128_si64(_mm512_castsi512_si128(x[0]));
  return (double)share * streams;
}

__attribute__((target("avx2"))) static double sweep256(const char *p, size_t n, int streams, int ahead) {
  __m256i x[4] = {_mm256_setzero_si256(), _mm256_setzero_si256(), _mm256_setzero_si256(), _mm256_setzero_si256()};
  size_t share = n / streams / STEP * STEP;
  for (size_t i = 0; i < share; i += STEP)
    for (int s = 0; s < streams; s++) {
      const char *q = p + s * share + i;
      for (int k = 0; k < STEP; k += 64) {
        if (ahead) _mm_prefetch(q + ahead + k, _MM_HINT_T0);
        x[k / 64] = _mm256_xor_si256(x[k / 64], _mm256_xor_si256(_mm256_load_si256((const __m256i *)(q + k)), _mm256_load_si256((const __m256i *)(q + k + 32))));
      }
    }
  x[0] = _mm256_xor_si256(_mm256_xor_si256(x[0], x[1]), _mm256_xor_si256(x[2], x[3]));
  sink = _mm_cvtsi128_si64(_mm256_castsi256_si128(x[0]));
  return (double)share * streams;
}

static double sweep(int id) {
  size_t n = WINDOW / threads / PAGE * PAGE;
  const char *p = memory + window * WINDOW + id * n;
  if (__builtin_cpu_supports("avx512f")) return sweep512(p, n, ways[way].streams, ways[way].ahead);
  return sweep256(p, n, ways[way].streams, ways[way].ahead);
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
      window = (window + 1) % (BYTES / WINDOW);
      way = (way + (window == 0)) % WAYS;
      more = now() - begin < (kind == 2 ? READ_SECONDS : SECONDS);
    }
    pthread_barrier_wait(&gate);
    if (!more) break;
  }
  if (id == 0) printf("{\"rate\": %.3f}\n", best / 1e9);
  return NULL;
}

int main(void) {
  if (!(memory = aligned_alloc(PAGE, BYTES))) return 1;
  madvise(memory, BYTES, MADV_HUGEPAGE); // without them the figure is only lower
  memset(memory, 1, BYTES);
  printf("{\"version\": \"%s\"}\n", __VERSION__);
  fflush(stdout);
  char name[8];
  while (scanf("%7s %d", name, &threads) == 2 && threads >= 1 && threads <= 32) {
    kind = !strcmp(name, "read") ? 2 : !strcmp(name, "bf16");
    if (kind == 1 && !__builtin_cpu_supports("avx512bf16")) {
      printf("{\"rate\": 0}\n");
    } else {
      pthread_t t[32];
      pthread_barrier_init(&gate, NULL, threads);
      for (long i = 1; i < threads; i++) pthread_create(t + i, NULL, run, (void *)i);
      run((void *)0);
      for (int i = 1; i < threads; i++) pthread_join(t[i], NULL);
      pthread_barrier_destroy(&gate);
    }
    fflush(stdout);
  }
}
