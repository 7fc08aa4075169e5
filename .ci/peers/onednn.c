// Times matrix products of oneDNN. Answers a line of JSON for each line "KIND PRECISION M N K THREADS" of the standard input with the
// best seconds of several runs. KIND is NT, NN or TN, c[M,N] = a b with b, or a, stored transposed; operands are dense and row-major,
// of bf16 or fp32, and c is fp32. A conversion of operands to bf16 is not counted.
#include <dnnl.h>
#include <omp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static double now(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return t.tv_sec + 1e-9 * t.tv_nsec;
}

static void check(dnnl_status_t s, const char *what) {
  if (s == dnnl_success) return;
  fprintf(stderr, "oneDNN: %s fails with status %d\n", what, s);
  exit(1);
}

static dnnl_memory_t matrix(dnnl_engine_t engine, dnnl_memory_desc_t *d, dnnl_data_type_t type, long rows, long columns, int transposed) {
  dnnl_dims_t dims = {rows, columns}, strides = {transposed ? 1 : columns, transposed ? rows : 1};
  check(dnnl_memory_desc_init_by_strides(d, 2, dims, type, strides), "memory descriptor");
  size_t bytes = ((size_t)rows * columns * (type == dnnl_bf16 ? 2 : 4) + 63) / 64 * 64;
  void *data = aligned_alloc(64, bytes);
  memset(data, 0, bytes); // speed does not depend on the values
  dnnl_memory_t m;
  check(dnnl_memory_create(&m, d, engine, data), "memory");
  return m;
}

static double best(const char *kind, int bf16, long m, long n, long k) {
  dnnl_engine_t engine;
  dnnl_stream_t stream;
  check(dnnl_engine_create(&engine, dnnl_cpu, 0), "engine");
  check(dnnl_stream_create(&stream, engine, dnnl_stream_default_flags), "stream");
  dnnl_memory_desc_t da, db, dc;
  dnnl_data_type_t type = bf16 ? dnnl_bf16 : dnnl_f32;
  dnnl_memory_t all[3] = {matrix(engine, &da, type, m, k, kind[0] == 'T'), matrix(engine, &db, type, k, n, kind[1] == 'T'),
                          matrix(engine, &dc, dnnl_f32, m, n, 0)};
  dnnl_matmul_desc_t description;
  dnnl_primitive_desc_t pd;
  dnnl_primitive_t p;
  check(dnnl_matmul_desc_init(&description, &da, &db, NULL, &dc), "matmul descriptor");
  check(dnnl_primitive_desc_create(&pd, &description, NULL, engine, NULL), "matmul of this type");
  check(dnnl_primitive_create(&p, pd), "matmul");
  dnnl_exec_arg_t args[3] = {{DNNL_ARG_SRC, all[0]}, {DNNL_ARG_WEIGHTS, all[1]}, {DNNL_ARG_DST, all[2]}};
  double least = 1e9, begin = now();
  for (int i = 0; i < 4 || (now() - begin < 0.15 && i < 200); i++) {
    double start = now();
    check(dnnl_primitive_execute(p, stream, 3, args), "execution");
    check(dnnl_stream_wait(stream), "wait");
    double took = now() - start;
    if (took < least) least = took;
  }
  dnnl_primitive_destroy(p);
  dnnl_primitive_desc_destroy(pd);
  for (int i = 0; i < 3; i++) {
    void *data;
    dnnl_memory_get_data_handle(all[i], &data);
    dnnl_memory_destroy(all[i]);
    free(data);
  }
  dnnl_stream_destroy(stream);
  dnnl_engine_destroy(engine);
  return least;
}

int main(void) {
  const dnnl_version_t *v = dnnl_version();
  printf("{\"version\": \"%d.%d.%d\"}\n", v->major, v->minor, v->patch);
  fflush(stdout);
  char kind[3], precision[5];
  long m, n, k;
  int threads;
  while (scanf("%2s %4s %ld %ld %ld %d", kind, precision, &m, &n, &k, &threads) == 6) {
    omp_set_num_threads(threads);
    printf("{\"seconds\": %.9f}\n", best(kind, !strcmp(precision, "bf16"), m, n, k));
    fflush(stdout);
  }
}
