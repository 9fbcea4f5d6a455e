// The kernels of Operators. Words have 64 bits, flags are bytes of 0 or 1, rows are indices of rows, -1 for none. Where an argument
// named `before` is not null, its flags hold too. Each thread takes one item after another, a grid apart.
#define EACH(i, n) \
    for (word i = blockIdx.x * (word) blockDim.x + threadIdx.x; i < (n); i += (word) gridDim.x * blockDim.x)
#define KERNEL extern "C" __global__ void
#define THREADS 256
#define TILE 1024
#define FEW 16

typedef long long word;
typedef unsigned long long uword;
typedef unsigned char byte;

// The number that the data have at an index, from 0 up to a range; `salt` tells columns apart.
__device__ word drawn(word index, word salt, word range) {
    uword x = ((uword) index * 2654435 + (uword) salt * 97) % 2147483647;
    return (word) ((x * x + (uword) salt) % 2147483629 % (uword) range);
}

KERNEL cistern_draw(
        word n, word first, word divisor, word salt, word range, word base, const word* before, word* out) {
    EACH(i, n) { out[i] = base + drawn((first + i) / divisor, salt, range) + (before ? before[i] : 0); }
}

// Texts of words from a table with 16 bytes for each, the first of which is the word's length.
KERNEL cistern_word_lengths(
        const byte* words, word wordBytes, word n, word first, word perRow, word range, word salt, word* out) {
    EACH(i, n) {
        word length = perRow - 1;
        for (word at = 0; at < perRow; at++) {
            length += words[16 * drawn(first + i, salt + at, range)];
        }
        out[i] = length;
    }
}

KERNEL cistern_write_words(
        const byte* words, word wordBytes, word n, word first, word perRow, word range, word salt,
        const word* offsets, word byteCount, byte* out) {
    EACH(i, n) {
        byte* to = out + offsets[i];
        for (word at = 0; at < perRow; at++) {
            const byte* from = words + 16 * drawn(first + i, salt + at, range);
            if (at > 0) {
                *to++ = ' ';
            }
            for (int letter = 1; letter <= from[0]; letter++) {
                *to++ = from[letter];
            }
        }
    }
}

KERNEL cistern_fill(word n, word value, word* out) {
    EACH(i, n) { out[i] = value; }
}

// 0, 1, 2 and so on, and -1 from `count` on.
KERNEL cistern_positions(word n, word count, word* out) {
    EACH(i, n) { out[i] = i < count ? i : -1; }
}

KERNEL cistern_between(
        const word* values, word n, word low, word high, word wanted, const byte* before, byte* out) {
    EACH(i, n) { out[i] = (!before || before[i]) && (values[i] >= low && values[i] <= high) == (wanted != 0); }
}

// Bits of Arrow's columns, the first one lowest in the first byte, from the bit `first` on.
KERNEL cistern_valid(const byte* bits, word byteCount, word first, word n, const byte* before, byte* out) {
    EACH(i, n) { out[i] = (!before || before[i]) && (bits[(first + i) >> 3] >> ((first + i) & 7) & 1); }
}

// Whether texts match a pattern of SQL's LIKE, of which % is known.
KERNEL cistern_like(
        const word* offsets, const byte* bytes, word n, word byteCount, const byte* pattern, word patternLength,
        word wanted, const byte* before, byte* out) {
    EACH(i, n) {
        word at = offsets[i], end = offsets[i + 1], letter = 0, percent = -1, mark = 0;
        bool fails = false;
        while (at < end && !fails) {
            if (letter < patternLength && pattern[letter] == '%') {
                percent = letter++;
                mark = at;
            } else if (letter < patternLength && pattern[letter] == bytes[at]) {
                letter++;
                at++;
            } else if (percent >= 0) {
                letter = percent + 1;
                at = ++mark;
            } else {
                fails = true;
            }
        }
        while (letter < patternLength && pattern[letter] == '%') {
            letter++;
        }
        out[i] = (!before || before[i]) && (!fails && letter == patternLength) == (wanted != 0);
    }
}

// For each item of a tile the sum of those before it, and the sum of each tile. Items are flags or words, one more
// than n, of which the last is 0: its sum is that of all. A block takes one tile after another.
KERNEL cistern_scan(const byte* flags, const word* words, word n, word tiles, word* out, word* sums) {
    __shared__ word partial[THREADS];
    word each = TILE / blockDim.x;
    for (word tile = blockIdx.x; tile < tiles; tile += gridDim.x) {
        word first = tile * TILE + threadIdx.x * each;
        word own = 0;
        for (word i = first; i < first + each && i < n; i++) {
            own += flags ? flags[i] : words[i];
        }
        partial[threadIdx.x] = own;
        __syncthreads();
        for (unsigned distance = 1; distance < blockDim.x; distance *= 2) {
            word before = threadIdx.x >= distance ? partial[threadIdx.x - distance] : 0;
            __syncthreads();
            partial[threadIdx.x] += before;
            __syncthreads();
        }
        word sum = partial[threadIdx.x] - own;
        for (word i = first; i < first + each && i <= n; i++) {
            out[i] = sum;
            sum += i == n ? 0 : flags ? flags[i] : words[i];
        }
        if (threadIdx.x == blockDim.x - 1) {
            sums[tile] = partial[threadIdx.x];
        }
        __syncthreads();
    }
}

KERNEL cistern_scan_add(const word* sumsBefore, word tiles, word n, word* out) {
    EACH(i, n) { out[i] += sumsBefore[i / TILE]; }
}

KERNEL cistern_select(const byte* flags, const word* positions, word n, word count, word* out) {
    EACH(i, n) {
        if (flags[i]) {
            out[positions[i]] = i;
        }
    }
}

KERNEL cistern_gather(const word* values, word valueCount, const word* rows, word n, word missing, word* out) {
    EACH(i, n) { out[i] = rows[i] < 0 ? missing : values[rows[i]]; }
}

// Of a, and of b or else a constant: 0 the sum, 1 b - a, 2 the product, 3 the quotient.
KERNEL cistern_calculate(word operation, const word* a, const word* b, word constant, word n, word* out) {
    EACH(i, n) {
        word other = b ? b[i] : constant;
        out[i] = operation == 0 ? a[i] + other
            : operation == 1 ? other - a[i]
            : operation == 2 ? a[i] * other
            : a[i] / other;
    }
}

__device__ word firstSlot(word key, word capacity) {
    uword hash = (uword) key * 0x9E3779B97F4A7C15ULL;
    return (word) ((hash ^ (hash >> 32)) & (uword) (capacity - 1));
}

// Puts keys into a table of `capacity` slots, a power of two larger than the number of different keys, and one more
// for the key that marks a free slot. Tells each row's slot.
KERNEL cistern_insert(const word* keys, word n, word capacity, word freeKey, word* tableKeys, word* slots) {
    EACH(i, n) {
        word key = keys[i], slot = capacity;
        if (key != freeKey) {
            slot = firstSlot(key, capacity);
            while (true) {
                word there = ((volatile word*) tableKeys)[slot];
                if (there == freeKey) {
                    there = (word) atomicCAS((uword*) tableKeys + slot, (uword) freeKey, (uword) key);
                }
                if (there == freeKey || there == key) {
                    break;
                }
                slot = (slot + 1) & (capacity - 1);
            }
        }
        slots[i] = slot;
    }
}

// A row for each slot, any one of those that have it.
KERNEL cistern_scatter(const word* slots, word n, word size, word* out) {
    EACH(i, n) { out[slots[i]] = i; }
}

KERNEL cistern_probe(
        const word* keys, word n, word capacity, word freeKey, const word* tableKeys, const word* tableRows,
        word* out) {
    EACH(i, n) {
        word slot = capacity;
        if (keys[i] != freeKey) {
            slot = firstSlot(keys[i], capacity);
            while (tableKeys[slot] != freeKey && tableKeys[slot] != keys[i]) {
                slot = (slot + 1) & (capacity - 1);
            }
        }
        out[i] = tableRows[slot];
    }
}

// Adds each row's value to its group's sum; without groups all are of the first one, without values each counts 1.
KERNEL cistern_sum(const word* groups, const word* values, word n, word groupCount, word* out) {
    EACH(i, n) { atomicAdd((uword*) out + (groups ? groups[i] : 0), (uword) (values ? values[i] : 1)); }
}

// The same for at most FEW groups, so that threads don't wait for each other's sums.
KERNEL cistern_sum_few(const word* groups, const word* values, word n, word groupCount, word* out) {
    __shared__ word sums[FEW * THREADS];
    for (word group = 0; group < groupCount; group++) {
        sums[group * blockDim.x + threadIdx.x] = 0;
    }
    EACH(i, n) { sums[(groups ? groups[i] : 0) * blockDim.x + threadIdx.x] += values ? values[i] : 1; }
    __syncthreads();
    for (word group = threadIdx.x; group < groupCount; group += blockDim.x) {
        word sum = 0;
        for (unsigned thread = 0; thread < blockDim.x; thread++) {
            sum += sums[group * blockDim.x + thread];
        }
        atomicAdd((uword*) out + group, (uword) sum);
    }
}

// One step of a bitonic sort of rows by key, then by row. Rows of -1, which fill up to a power of two, come last.
KERNEL cistern_sort_step(word* keys, word* rows, word n, word distance, word run) {
    EACH(i, n) {
        word other = i ^ distance;
        if (other > i) {
            bool isAfter = rows[other] >= 0
                && (rows[i] < 0 || keys[i] > keys[other] || (keys[i] == keys[other] && rows[i] > rows[other]));
            if (isAfter == ((i & run) == 0)) {
                word key = keys[i], row = rows[i];
                keys[i] = keys[other];
                rows[i] = rows[other];
                keys[other] = key;
                rows[other] = row;
            }
        }
    }
}

KERNEL cistern_hash_strings(const word* offsets, const byte* bytes, word n, word byteCount, word* out) {
    EACH(i, n) {
        uword hash = 0xCBF29CE484222325ULL;
        for (word at = offsets[i]; at < offsets[i + 1]; at++) {
            hash = (hash ^ bytes[at]) * 0x100000001B3ULL;
        }
        out[i] = (word) hash;
    }
}

KERNEL cistern_string_lengths(const word* offsets, word strings, const word* rows, word n, word* out) {
    EACH(i, n) { out[i] = offsets[rows[i] + 1] - offsets[rows[i]]; }
}

KERNEL cistern_copy_strings(
        const word* offsets, const byte* bytes, word strings, word byteCount, const word* rows, word n,
        const word* outOffsets, word outCount, byte* out) {
    EACH(i, n) {
        for (word at = 0; at < outOffsets[i + 1] - outOffsets[i]; at++) {
            out[outOffsets[i] + at] = bytes[offsets[rows[i]] + at];
        }
    }
}
