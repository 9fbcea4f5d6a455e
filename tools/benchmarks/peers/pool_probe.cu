// Shows what the driver's memory pool does, step by step: where each block lies and what is reserved afterwards.
// usage: pool_probe {none|memset} passes script.csv…   
// A script has rows `op,id,bytes,stream`, so a trace is one. memset: each block is written after its allocation.
//   a allocate   f free block id on stream   m write block id on stream   h hold stream until l (release all)
//   r record event id on stream   w stream waits for event id   q query stream   e query event id
//   s synchronize stream   d synchronize device   p pause: bytes microseconds   t trim to bytes
//   o pool options: bytes = 1 follow events + 2 opportunistic + 4 internal dependencies
//   n new pool, with what was reserved before given back
// Each row prints `op,id,bytes,stream,offset of the block from the pool's first,reserved`; a query prints its result there.
#include <cuda.h>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <string>
#include <vector>
#define CK(x) do { CUresult e_ = (x); if (e_ != CUDA_SUCCESS) { fprintf(stderr, "%s:%d %s -> %d\n", __FILE__, __LINE__, #x, (int)e_); exit(1); } } while (0)

struct Row { char op; long id; unsigned long long bytes; int stream; };

static std::vector<Row> read_rows(const char* path) {
  std::vector<Row> rows;
  FILE* f = fopen(path, "r");
  if (!f) { perror(path); exit(2); }
  char line[256];
  while (fgets(line, sizeof line, f)) {
    Row r{0, 0, 0, 0};
    if (line[1] != ',') continue;
    char* at = line + 2;
    r.op = line[0];
    r.id = strtol(at, &at, 10);
    if (*at == ',') r.bytes = strtoull(at + 1, &at, 10);
    if (*at == ',') r.stream = (int)strtol(at + 1, &at, 10);
    rows.push_back(r);
  }
  fclose(f);
  return rows;
}

struct Probe {
  CUmemoryPool pool{};
  std::map<int, CUstream> streams;
  std::map<long, CUevent> events;
  std::map<long, std::pair<CUdeviceptr, std::pair<size_t, int>>> live;
  CUdeviceptr first = 0;
  volatile uint32_t* latch = nullptr;  // how often held streams were released
  CUdeviceptr latch_device = 0;
  bool memset;

  explicit Probe(bool memset_) : memset(memset_) {
    CK(cuMemHostAlloc((void**)&latch, 4, CU_MEMHOSTALLOC_DEVICEMAP));
    *latch = 0;
    CK(cuMemHostGetDevicePointer(&latch_device, (void*)latch, 0));
    fresh();
  }
  void fresh() {
    if (pool) { CK(cuCtxSynchronize()); CK(cuMemPoolDestroy(pool)); }
    CUmemPoolProps props{};
    props.allocType = CU_MEM_ALLOCATION_TYPE_PINNED;
    props.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
    CK(cuMemPoolCreate(&pool, &props));
    uint64_t all = UINT64_MAX;
    CK(cuMemPoolSetAttribute(pool, CU_MEMPOOL_ATTR_RELEASE_THRESHOLD, &all));
    first = 0;
  }
  CUstream stream(int i) {
    CUstream& s = streams[i];
    if (!s) CK(cuStreamCreate(&s, CU_STREAM_NON_BLOCKING));
    return s;
  }
  CUevent event(long i) {
    CUevent& e = events[i];
    if (!e) CK(cuEventCreate(&e, CU_EVENT_DISABLE_TIMING));
    return e;
  }
  unsigned long long attribute(CUmemPool_attribute a) {
    uint64_t v = 0;
    CK(cuMemPoolGetAttribute(pool, a, &v));
    return v;
  }
  void option(CUmemPool_attribute a, bool on) { int v = on; CK(cuMemPoolSetAttribute(pool, a, &v)); }
  void pause(unsigned long long micros) {
    auto end = std::chrono::steady_clock::now() + std::chrono::microseconds(micros);
    while (std::chrono::steady_clock::now() < end) {}
  }
  long long run(const Row& r) {
    switch (r.op) {
      case 'a': {
        CUdeviceptr p = 0;
        CK(cuMemAllocFromPoolAsync(&p, r.bytes, pool, stream(r.stream)));
        if (!first) first = p;
        live[r.id] = {p, {(size_t)r.bytes, r.stream}};
        if (memset && r.bytes) CK(cuMemsetD8Async(p, 1, r.bytes, stream(r.stream)));
        return (long long)(p - first);
      }
      case 'f': {
        auto b = live[r.id];
        CK(cuMemFreeAsync(b.first, stream(r.stream)));
        live.erase(r.id);
        return (long long)(b.first - first);
      }
      case 'm': CK(cuMemsetD8Async(live[r.id].first, 1, live[r.id].second.first, stream(r.stream))); return 0;
      case 'h': CK(cuStreamWaitValue32(stream(r.stream), latch_device, *latch + 1, CU_STREAM_WAIT_VALUE_GEQ)); return 0;
      case 'l': *latch = *latch + 1; return 0;
      case 'r': CK(cuEventRecord(event(r.id), stream(r.stream))); return 0;
      case 'w': CK(cuStreamWaitEvent(stream(r.stream), event(r.id), 0)); return 0;
      case 'q': return cuStreamQuery(stream(r.stream));
      case 'e': return cuEventQuery(event(r.id));
      case 's': CK(cuStreamSynchronize(stream(r.stream))); return 0;
      case 'd': CK(cuCtxSynchronize()); return 0;
      case 'p': pause(r.bytes); return 0;
      case 't': CK(cuMemPoolTrimTo(pool, r.bytes)); return 0;
      case 'o':
        option(CU_MEMPOOL_ATTR_REUSE_FOLLOW_EVENT_DEPENDENCIES, r.bytes & 1);
        option(CU_MEMPOOL_ATTR_REUSE_ALLOW_OPPORTUNISTIC, r.bytes & 2);
        option(CU_MEMPOOL_ATTR_REUSE_ALLOW_INTERNAL_DEPENDENCIES, r.bytes & 4);
        return 0;
      case 'n':
        *latch = *latch + 1;
        free_all();
        fresh();
        return 0;
      default: return 0;  // what a trace of format 2 has besides
    }
  }
  void free_all() {
    for (auto& b : live) CK(cuMemFreeAsync(b.second.first, stream(b.second.second.second)));
    live.clear();
  }
};

int main(int argc, char** argv) {
  if (argc < 4) { fprintf(stderr, "usage: pool_probe {none|memset} passes script.csv...\n"); return 2; }
  bool memset = !strcmp(argv[1], "memset");
  int passes = atoi(argv[2]);
  CUdevice device;
  CUcontext context;
  CK(cuInit(0));
  CK(cuDeviceGet(&device, 0));
  CK(cuDevicePrimaryCtxRetain(&context, device));
  CK(cuCtxSetCurrent(context));
  char name[256];
  int driver = 0;
  CK(cuDeviceGetName(name, sizeof name, device));
  CK(cuDriverGetVersion(&driver));
  for (int i = 3; i < argc; i++) {
    std::vector<Row> rows = read_rows(argv[i]);
    printf("# %s, driver %d, %s, %s, op,id,bytes,stream,offset,reserved\n", name, driver, argv[1], argv[i]);
    Probe probe(memset);
    for (const Row& r : rows) probe.stream(r.stream);
    std::vector<long long> offsets(rows.size());
    std::vector<unsigned long long> reserved(rows.size());
    for (int pass = 0; pass < passes; pass++) {
      CK(cuCtxSynchronize());
      for (size_t k = 0; k < rows.size(); k++) {  // nothing is printed meanwhile: that would take time
        offsets[k] = probe.run(rows[k]);
        reserved[k] = probe.attribute(CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT);
      }
      CK(cuCtxSynchronize());
      probe.free_all();
      printf("# pass %d, reserved high %llu\n", pass, probe.attribute(CU_MEMPOOL_ATTR_RESERVED_MEM_HIGH));
      for (size_t k = 0; k < rows.size(); k++)
        printf("%c,%ld,%llu,%d,%lld,%llu\n", rows[k].op, rows[k].id, rows[k].bytes, rows[k].stream, offsets[k], reserved[k]);
    }
    probe.fresh();
  }
}
