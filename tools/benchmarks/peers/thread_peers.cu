// Loads of many threads through the peers, as ThreadLoads has them for caching.
// usage: thread_peers {torch|async} [threads] [rounds] [millis per round]
#include "peers.h"

#include <atomic>
#include <cmath>
#include <functional>
#include <random>
#include <thread>

using Stop = std::atomic<bool>;
using Load = std::function<long(int thread, Stop& stop)>;

static std::vector<size_t> sizes(int seed, double least, double most) {
  std::mt19937_64 random(seed);
  std::uniform_real_distribution<double> draw(0, 1);
  std::vector<size_t> sizes(1 << 12);
  for (auto& size : sizes) size = static_cast<size_t>(least * std::exp(std::log(most / least) * draw(random)));
  return sizes;
}

// Replaces blocks at random; returns how many.
template <class A>
static long replace(cudaStream_t stream, int seed, double least, double most, int live, Stop& stop) {
  auto drawn = sizes(seed, least, most);
  std::mt19937_64 random(seed + 1);
  std::vector<void*> blocks(live);
  long count = 0;
  for (; !stop; count++) {
    void*& block = blocks[random() % live];
    if (block != nullptr) A::free(block, stream);
    block = A::allocate(drawn[count & 4095], stream);
  }
  for (void* block : blocks) {
    if (block != nullptr) A::free(block, stream);
  }
  return count;
}

static double round_of(const Load& load, int threads, double millis) {
  Stop stop{false};
  std::atomic<int> ready{0};
  std::atomic<long> operations{0};
  std::vector<std::thread> all;
  for (int i = 0; i < threads; i++) {
    all.emplace_back([&, i] {
      CHECK(cudaSetDevice(0));
      ready++;
      while (ready < threads) std::this_thread::yield();
      operations += load(i, stop);
    });
  }
  while (ready < threads) std::this_thread::yield();
  auto begin = Clock::now();
  std::this_thread::sleep_for(std::chrono::duration<double, std::milli>(millis));
  stop = true;
  for (auto& thread : all) thread.join();
  double nanos = nanos_since(begin);
  CHECK(cudaDeviceSynchronize());
  return nanos * threads / static_cast<double>(operations);
}

template <class A>
static void measure(const char* name, const Load& load, int threads, int rounds, double millis) {
  round_of(load, threads, 4 * millis);
  std::vector<double> nanos;
  for (int i = 0; i < rounds; i++) nanos.push_back(round_of(load, threads, millis));
  printf("{\"load\":\"%s\",\"allocator\":\"%s\",\"threads\":%d,\"nanosPerOperation\":%.1f,\"least\":%.1f,\"most\":%.1f,"
         "\"reservedPeakBytes\":%ld}\n",
         name, A::name().c_str(), threads, median(nanos), *std::min_element(nanos.begin(), nanos.end()),
         *std::max_element(nanos.begin(), nanos.end()), static_cast<long>(A::reserved_peak()));
  fflush(stdout);
}

int main(int argc, char** argv) {
  int threads = argc > 2 ? atoi(argv[2]) : 16, rounds = argc > 3 ? atoi(argv[3]) : 3;
  double millis = argc > 4 ? atof(argv[4]) : 200;
  bool known = argc > 1 && with_peer(argv[1], [&](auto peer) {
    using A = decltype(peer);
    std::vector<cudaStream_t> streams(threads);
    for (auto& stream : streams) CHECK(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
    const double kib = 1024, mib = 1024 * kib;
    measure<A>("own", [&](int i, Stop& stop) { return replace<A>(streams[i], i, 512, 256 * kib, 64, stop); }, threads, rounds, millis);
    measure<A>("shared", [&](int i, Stop& stop) { return replace<A>(streams[0], i, 512, 256 * kib, 64, stop); }, threads, rounds, millis);
    measure<A>("large", [&](int i, Stop& stop) { return replace<A>(streams[i], i, mib, 16 * mib, 8, stop); }, threads, rounds, millis);
  });
  if (!known) {
    fprintf(stderr, "usage: thread_peers {torch|async} [threads] [rounds] [millis per round]\n");
    return 2;
  }
}
