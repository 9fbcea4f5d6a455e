// The kernels of KeyedSums. Each thread takes one item after another, a grid apart.
#define EACH(i, n) \
    for (long long i = blockIdx.x * (long long) blockDim.x + threadIdx.x; i < (n); \
         i += (long long) gridDim.x * blockDim.x)

typedef unsigned long long word;

__device__ bool valid(const unsigned char* bits, long long i) {
    return bits[i >> 3] >> (i & 7) & 1;
}

// Rows from `first` whose key and value are there and whose value is at least `least`; in any order.
extern "C" __global__ void cistern_filter(
        const long long* keys, const unsigned char* keyBits, const long long* values, const unsigned char* valueBits,
        long long first, long long n, long long least, long long* outKeys, long long* outValues, word* outCount) {
    EACH(i, n) {
        long long row = first + i;
        if (valid(keyBits, row) && valid(valueBits, row) && values[row] >= least) {
            word at = atomicAdd(outCount, 1ULL);
            outKeys[at] = keys[row];
            outValues[at] = values[row];
        }
    }
}

// Adds rows to a table of `capacity` slots, a power of two, and one more for the key that marks a free slot. Without
// counts each row counts once.
extern "C" __global__ void cistern_aggregate(
        const long long* keys, const long long* values, const long long* counts, long long n,
        word* tableKeys, word* tableSums, word* tableCounts, long long capacity, long long freeKey, word* groups) {
    EACH(i, n) {
        word key = (word) keys[i];
        long long slot = capacity;
        if (keys[i] != freeKey) {
            word hash = key * 0x9E3779B97F4A7C15ULL;
            slot = (long long) ((hash ^ (hash >> 32)) & (word) (capacity - 1));
            while (true) {
                word there = atomicCAS(tableKeys + slot, (word) freeKey, key);
                if (there == (word) freeKey || there == key) {
                    break;
                }
                slot = (slot + 1) & (capacity - 1);
            }
        }
        atomicAdd(tableSums + slot, (word) values[i]);
        if (atomicAdd(tableCounts + slot, counts ? (word) counts[i] : 1ULL) == 0) {
            atomicAdd(groups, 1ULL);
        }
    }
}

// The slots that are taken, in any order.
extern "C" __global__ void cistern_compact(
        const long long* tableKeys, const long long* tableSums, const long long* tableCounts, long long slots,
        long long* outKeys, long long* outSums, long long* outCounts, word* outCount) {
    EACH(i, slots) {
        if (tableCounts[i] > 0) {
            word at = atomicAdd(outCount, 1ULL);
            outKeys[at] = tableKeys[i];
            outSums[at] = tableSums[i];
            outCounts[at] = tableCounts[i];
        }
    }
}

// One step of a bitonic sort by key; rows of count 0, which fill up to a power of two, go behind all.
extern "C" __global__ void cistern_sort_step(
        long long* keys, long long* sums, long long* counts, long long n, long long distance, long long run) {
    EACH(i, n) {
        long long other = i ^ distance;
        if (other <= i) {
            continue;
        }
        bool isAfter = counts[i] == 0 ? counts[other] != 0 : counts[other] != 0 && keys[i] > keys[other];
        bool isBefore = counts[other] == 0 ? counts[i] != 0 : counts[i] != 0 && keys[other] > keys[i];
        if ((i & run) == 0 ? isAfter : isBefore) {
            long long key = keys[i], sum = sums[i], count = counts[i];
            keys[i] = keys[other];
            sums[i] = sums[other];
            counts[i] = counts[other];
            keys[other] = key;
            sums[other] = sum;
            counts[other] = count;
        }
    }
}

extern "C" __global__ void cistern_fill_longs(long long* target, long long n, long long value) {
    EACH(i, n) {
        target[i] = value;
    }
}
