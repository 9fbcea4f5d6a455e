// Runs the kernels of keyed-sums.cu with one thread on the host, and prints what came out.
#include <cstdio>
#define __global__
#define __device__
struct Extent { unsigned x; };
static Extent blockIdx{0}, threadIdx{0}, blockDim{1}, gridDim{1};

static unsigned long long atomicAdd(unsigned long long* at, unsigned long long value) {
    unsigned long long before = *at;
    *at += value;
    return before;
}

static unsigned long long atomicCAS(unsigned long long* at, unsigned long long expected, unsigned long long value) {
    unsigned long long before = *at;
    if (before == expected) {
        *at = value;
    }
    return before;
}

@KERNELS@

static const int ROWS = 1000, SLOTS = 2048, SORTED = 64;
static const long long FREE = -9223372036854775807LL - 1;
static long long keys[ROWS], values[ROWS], passedKeys[ROWS], passedValues[ROWS];
static unsigned char bits[ROWS / 8 + 1];
static word tableKeys[SLOTS + 1], tableSums[SLOTS + 1], tableCounts[SLOTS + 1];
static long long outKeys[SORTED], outSums[SORTED], outCounts[SORTED];

int main() {
    for (int i = 0; i < ROWS; i++) {
        keys[i] = i * 37 % 50;
        values[i] = i;
        bits[i / 8] |= 1 << i % 8;
    }
    keys[20] = FREE;
    bits[2] &= ~1; // row 16 has no value
    word passed = 0, groups = 0, compacted = 0;
    cistern_filter(keys, bits, values, bits, 0, ROWS, 10, passedKeys, passedValues, &passed);
    cistern_fill_longs((long long*) tableKeys, SLOTS + 1, FREE);
    cistern_aggregate(passedKeys, passedValues, nullptr, passed, tableKeys, tableSums, tableCounts, SLOTS, FREE, &groups);
    cistern_compact((long long*) tableKeys, (long long*) tableSums, (long long*) tableCounts, SLOTS + 1,
            outKeys, outSums, outCounts, &compacted);
    for (long long run = 2; run <= SORTED; run *= 2) {
        for (long long distance = run / 2; distance > 0; distance /= 2) {
            cistern_sort_step(outKeys, outSums, outCounts, SORTED, distance, run);
        }
    }
    long long sum = 0, count = 0;
    bool sorted = true;
    for (word i = 0; i < compacted; i++) {
        sum += outSums[i];
        count += outCounts[i];
        sorted = sorted && (i == 0 || outKeys[i - 1] < outKeys[i]);
    }
    printf("passed %llu, groups %llu, compacted %llu, first %lld with %lld, sum %lld, count %lld, sorted %d\n",
            passed, groups, compacted, outKeys[0], outSums[0], sum, count, sorted);
}
