// Pairs of an allocation and its free through the peers: PyTorch's native caching allocator and cudaMallocAsync.
// usage: alloc_peers {torch|async|malloc} [rounds] [millis per round]
// Prints rows with the fields of PairCosts, whose cases are the scenarios pair and threads. Method: random sizes over half of the largest (exchanges: of all magnitudes), warmed, the
// median of rounds of a fixed number of pairs, the times of threads that are all at it; the percentile from a round of
// its own that times each pair.
#include "peers.h"

#include <atomic>
#include <cmath>
#include <memory>
#include <random>
#include <thread>

// Sizes drawn before, round and round.
class Sizes {
 public:
  static Sizes upper_half(size_t most, uint64_t seed) {
    std::mt19937_64 random(seed);
    std::uniform_int_distribution<size_t> draw(most / 2 + 1, most);
    return Sizes(most, [&] { return draw(random); });
  }
  static Sizes of_all_magnitudes(size_t most, uint64_t seed) {
    std::mt19937_64 random(seed);
    std::uniform_real_distribution<double> draw(0, 1);
    return Sizes(most, [&] { return static_cast<size_t>(std::pow(static_cast<double>(most), draw(random))); });
  }
  size_t next() { return bytes_[next_++ & (kCount - 1)]; }

 private:
  static constexpr size_t kCount = 1 << 11;
  template <class F>
  Sizes(size_t most, F draw) : bytes_(kCount) {
    bytes_[0] = static_cast<uint32_t>(most);
    for (size_t i = 1; i < kCount; i++) bytes_[i] = static_cast<uint32_t>(draw());
  }
  std::vector<uint32_t> bytes_;
  size_t next_ = 0;
};

struct Load {
  virtual ~Load() = default;
  virtual bool stands_alone() const { return true; }
  virtual void begin() {}
  virtual void run(int pairs) = 0;
  virtual void time(std::vector<double>& nanos) = 0;
  virtual void end() {}
};

template <class A>
class Pairs : public Load {
 public:
  Pairs(cudaStream_t stream, Sizes sizes, int live) : stream_(stream), sizes_(std::move(sizes)), others_(live) {}
  void begin() override {
    for (auto& other : others_) other = A::allocate(sizes_.next(), stream_);
  }
  void run(int pairs) override {
    for (int i = 0; i < pairs; i++) pair();
  }
  void time(std::vector<double>& nanos) override {
    for (auto& taken : nanos) {
      auto begin = Clock::now();
      pair();
      taken = nanos_since(begin);
    }
  }
  void end() override {
    for (auto other : others_) A::free(other, stream_);
  }

 private:
  void pair() { A::free(A::allocate(sizes_.next(), stream_), stream_); }
  cudaStream_t stream_;
  Sizes sizes_;
  std::vector<void*> others_;
};

template <class A>
class Exchanges : public Load {
 public:
  Exchanges(cudaStream_t stream, Sizes sizes, int live) : stream_(stream), sizes_(std::move(sizes)), live_(live) {}
  void begin() override {
    for (auto& block : live_) block = A::allocate(sizes_.next(), stream_);
  }
  void run(int pairs) override {
    for (int i = 0; i < pairs; i++) exchange();
  }
  void time(std::vector<double>& nanos) override {
    for (auto& taken : nanos) {
      auto begin = Clock::now();
      exchange();
      taken = nanos_since(begin);
    }
  }
  void end() override {
    for (auto block : live_) A::free(block, stream_);
  }

 private:
  void exchange() {
    random_ ^= random_ << 13;
    random_ ^= random_ >> 7;
    random_ ^= random_ << 17;
    void*& chosen = live_[random_ % live_.size()];
    A::free(chosen, stream_);
    chosen = A::allocate(sizes_.next(), stream_);
  }
  cudaStream_t stream_;
  Sizes sizes_;
  std::vector<void*> live_;
  uint64_t random_ = 0x9e3779b97f4a7c15ull;
};

// A ring of slots that are null while empty.
class Ring {
 public:
  Ring() : slots_(new std::atomic<void*>[kCapacity]) {
    for (size_t i = 0; i < kCapacity; i++) slots_[i].store(nullptr, std::memory_order_relaxed);
  }
  void put(size_t position, void* block) {
    auto& slot = slots_[position & (kCapacity - 1)];
    for (int looks = 0; slot.load(std::memory_order_acquire) != nullptr; looks++) pause(looks);
    slot.store(block, std::memory_order_release);
  }
  void* take(size_t position) {
    auto& slot = slots_[position & (kCapacity - 1)];
    void* block = slot.load(std::memory_order_acquire);
    for (int looks = 0; block == nullptr; block = slot.load(std::memory_order_acquire)) pause(looks++);
    slot.store(nullptr, std::memory_order_release);
    return block;
  }

 private:
  static constexpr size_t kCapacity = 1 << 12;
  static void pause(int looks) {
    if ((looks & 255) == 255) std::this_thread::yield();
  }
  std::unique_ptr<std::atomic<void*>[]> slots_;
};

template <class A>
class Producer : public Load {
 public:
  Producer(Ring& ring, cudaStream_t stream, Sizes sizes) : ring_(ring), stream_(stream), sizes_(std::move(sizes)) {}
  bool stands_alone() const override { return false; }
  void run(int pairs) override {
    for (int i = 0; i < pairs; i++) ring_.put(position_++, A::allocate(sizes_.next(), stream_));
  }
  void time(std::vector<double>& nanos) override {
    for (auto& taken : nanos) {
      auto begin = Clock::now();
      void* block = A::allocate(sizes_.next(), stream_);
      taken = nanos_since(begin);
      ring_.put(position_++, block);
    }
  }

 private:
  Ring& ring_;
  cudaStream_t stream_;
  Sizes sizes_;
  size_t position_ = 0;
};

template <class A>
class Consumer : public Load {
 public:
  Consumer(Ring& ring, cudaStream_t stream) : ring_(ring), stream_(stream) {}
  bool stands_alone() const override { return false; }
  void run(int pairs) override {
    for (int i = 0; i < pairs; i++) A::free(ring_.take(position_++), stream_);
  }
  void time(std::vector<double>& nanos) override {
    for (auto& taken : nanos) {
      void* block = ring_.take(position_++);
      auto begin = Clock::now();
      A::free(block, stream_);
      taken = nanos_since(begin);
    }
  }

 private:
  Ring& ring_;
  cudaStream_t stream_;
  size_t position_ = 0;
};

struct Member {
  std::unique_ptr<Load> load;
  cudaStream_t stream;
};

// Lets every member do its part on a thread of its own, from a common start.
template <class F>
static void together(std::vector<Member>& members, F part) {
  std::atomic<size_t> ready{0};
  std::atomic<bool> go{false};
  std::vector<std::thread> threads;
  for (size_t i = 0; i < members.size(); i++) {
    threads.emplace_back([&, i] {
      CHECK(cudaSetDevice(0));
      ready++;
      while (!go) std::this_thread::yield();
      part(i, members[i]);
    });
  }
  while (ready < members.size()) std::this_thread::yield();
  go = true;
  for (auto& thread : threads) thread.join();
}

// Makes so many pairs; returns what they took, without the waits for the stream.
static double run(Member& member, int pairs) {
  double nanos = 0;
  for (int left = pairs; left > 0; left -= 1 << 14) {
    auto begin = Clock::now();
    member.load->run(std::min(left, 1 << 14));
    nanos += nanos_since(begin);
    CHECK(cudaStreamSynchronize(member.stream));
  }
  return nanos;
}

// One round; returns what it takes a thread while all are at it: who is done goes on beside the others, for nothing.
static double round_of(std::vector<Member>& members, int pairs) {
  std::vector<double> own(members.size());
  std::atomic<size_t> busy{members.size()};
  together(members, [&](size_t i, Member& member) {
    own[i] = run(member, pairs);
    busy--;
    while (busy > 0 && member.load->stands_alone()) run(member, std::min(pairs, 1 << 14));
  });
  double rounds_a_nano = 0;
  for (double nanos : own) rounds_a_nano += 1 / nanos;
  return static_cast<double>(members.size()) / rounds_a_nano;
}

struct Case {
  const char* scenario;
  const char* variant;
  int threads;
  size_t bytes;
  int live;
};

// Ends a row with the percentiles of single pairs.
static void print_percentiles(std::vector<double>& nanos) {
  std::sort(nanos.begin(), nanos.end());
  for (auto [name, share] : {std::pair{"p50", 0.5}, {"p90", 0.9}, {"p99", 0.99}, {"p999", 0.999}, {"p9999", 0.9999}}) {
    printf(",\"%sNanos\":%.3f", name, nanos[static_cast<size_t>(static_cast<double>(nanos.size()) * share)]);
  }
  printf("}\n");
  fflush(stdout);
}

struct Method {
  std::string allocator;
  int rounds;
  double round_nanos;
};

static int warm_up(std::vector<Member>& members, const Method& method) {
  int pairs = 64;
  for (double left = 3 * method.round_nanos; left > 0;) {
    double nanos = round_of(members, pairs);
    left -= nanos;
    if (nanos < method.round_nanos / 4 && pairs < 1 << 29) pairs *= 2;
  }
  double wanted = pairs * method.round_nanos / round_of(members, pairs);
  return static_cast<int>(std::min(1e9, std::max(16.0, wanted)));
}

static void measure(const Case& each, std::vector<Member> members, const Method& method) {
  together(members, [](size_t, Member& member) { member.load->begin(); });
  int pairs = warm_up(members, method);
  std::vector<double> nanos;
  for (int i = 0; i < method.rounds; i++) nanos.push_back(round_of(members, pairs) / pairs);
  std::vector<std::vector<double>> timed(members.size(), std::vector<double>(std::min(pairs, 200000)));
  together(members, [&](size_t i, Member& member) {
    member.load->time(timed[i]);
    CHECK(cudaStreamSynchronize(member.stream));
  });
  std::vector<double> all;
  for (auto& part : timed) all.insert(all.end(), part.begin(), part.end());
  together(members, [](size_t, Member& member) {
    member.load->end();
    CHECK(cudaStreamSynchronize(member.stream));
  });
  bool handoff = std::string(each.scenario) == "handoff";
  double mid = median(nanos);
  printf("{\"scenario\":\"%s\",\"variant\":\"%s\",\"allocator\":\"%s\",\"device\":\"cuda:0\",\"threads\":%d,"
         "\"byteSize\":%zu,\"liveBlocks\":%d,\"nanosPerPair\":%.3f,\"lowestNanosPerPair\":%.3f,"
         "\"highestNanosPerPair\":%.3f,\"rounds\":%d,\"pairsPerSecond\":%.3f",
         each.scenario, each.variant, method.allocator.c_str(), each.threads, each.bytes, each.live, mid,
         *std::min_element(nanos.begin(), nanos.end()), *std::max_element(nanos.begin(), nanos.end()), method.rounds,
         1e9 * (handoff ? 1 : each.threads) / mid);
  print_percentiles(all);
}

template <class A>
static std::vector<Member> loads(const Case& each, const std::vector<cudaStream_t>& streams, bool shared) {
  bool exchange = std::string(each.variant) == "exchange";
  std::vector<Member> members;
  for (int i = 0; i < each.threads; i++) {
    cudaStream_t stream = streams[shared ? 0 : i];
    std::unique_ptr<Load> load;
    if (exchange) {
      load = std::make_unique<Exchanges<A>>(stream, Sizes::of_all_magnitudes(each.bytes, 1 + i), each.live);
    } else {
      load = std::make_unique<Pairs<A>>(stream, Sizes::upper_half(each.bytes, 1 + i), each.live);
    }
    members.push_back({std::move(load), stream});
  }
  return members;
}

template <class A>
static void measure_all(const Method& method) {
  std::vector<cudaStream_t> streams(16);
  for (auto& stream : streams) CHECK(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
  for (size_t bytes : {size_t{512}, size_t{4} << 10, size_t{64} << 10, size_t{1} << 20, size_t{4} << 20, size_t{64} << 20}) {
    Case each{"pair", "pair", 1, bytes, 0};
    measure(each, loads<A>(each, streams, false), method);
  }
  Case mixed{"mixed", "exchange", 1, 1 << 20, 64};
  measure(mixed, loads<A>(mixed, streams, false), method);
  int processors = static_cast<int>(std::thread::hardware_concurrency());
  for (int threads : {1, 2, 4, 8, 16}) {
    if (threads > processors) break;
    Case own{"threads", "own streams", threads, 4096, 0};
    measure(own, loads<A>(own, streams, false), method);
    if (threads == 1) continue;
    Case one{"threads", "one stream", threads, 4096, 0};
    measure(one, loads<A>(one, streams, true), method);
  }
  Ring ring;
  std::vector<Member> two;
  two.push_back({std::make_unique<Producer<A>>(ring, streams[0], Sizes::upper_half(4096, 1)), streams[0]});
  two.push_back({std::make_unique<Consumer<A>>(ring, streams[0]), streams[0]});
  measure({"handoff", "handoff", 2, 4096, 0}, std::move(two), method);
  for (int live : {1000, 10000, 100000, 1000000}) {
    Case pair{"scale", "pair", 1, 4096, live};
    measure(pair, loads<A>(pair, streams, false), method);
    Case exchange{"scale", "exchange", 1, 4096, live};
    measure(exchange, loads<A>(exchange, streams, false), method);
  }
}

int main(int argc, char** argv) {
  int rounds = argc > 2 ? atoi(argv[2]) : 5;
  double millis = argc > 3 ? atof(argv[3]) : 50;
  bool known = argc > 1 && with_peer(argv[1], [&](auto peer) {
    using A = decltype(peer);
    measure_all<A>({A::name(), rounds, 1e6 * millis});
  });
  if (!known) {
    fprintf(stderr, "usage: alloc_peers {torch|async|malloc} [rounds] [millis per round]\n");
    return 2;
  }
}
