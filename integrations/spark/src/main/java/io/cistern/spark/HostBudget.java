package io.cistern.spark;

import io.cistern.errors.ConfigurationException;
import org.apache.spark.SparkConf;
import org.apache.spark.SparkEnv;
import org.apache.spark.memory.MemoryMode;
import org.apache.spark.storage.BlockId;
import org.apache.spark.storage.TestBlockId;

/// Pinned host memory that counts towards the executor's own. If Spark's off-heap memory is in use, the budget
/// is reserved from it until the executor ends. Otherwise it is part of the executor's memory overhead, for
/// which a cluster's containers have room.
///
/// @param byteSize the most bytes that may be pinned, for spilled buffers and for copies
/// @param reserved whether Spark's off-heap memory counts it
record HostBudget(long byteSize, boolean reserved) {
    private static final BlockId BLOCK = new TestBlockId("cistern-pinned");
    private static final String OFF_HEAP = "spark.memory.offHeap.enabled";
    private static final String OFF_HEAP_SIZE = "spark.memory.offHeap.size";
    private static final long MEBI = 1 << 20;
    private static final long MIN_OVERHEAD = 384 * MEBI;

    /// Takes the budget of an executor.
    ///
    /// @throws ConfigurationException if the executor does not have that much memory
    static HostBudget take(SparkConf conf, SparkEnv env) {
        boolean offHeap = isOffHeap(conf);
        long wanted = wanted(conf);
        if (offHeap && !env.memoryManager().acquireStorageMemory(BLOCK, wanted, MemoryMode.OFF_HEAP)) {
            throw new ConfigurationException("Spark's off-heap memory has less than " + wanted + " bytes free for "
                    + PluginSetting.PINNED.key());
        }
        return new HostBudget(wanted, offHeap);
    }

    /// Returns the configured bytes.
    ///
    /// @throws ConfigurationException if executors don't have that much
    static long wanted(SparkConf conf) {
        boolean offHeap = isOffHeap(conf);
        long room = offHeap ? conf.getSizeAsBytes(OFF_HEAP_SIZE, "0") : overhead(conf);
        long wanted = PluginSetting.PINNED
                .in(conf)
                .map(set -> PluginSetting.PINNED.bytes(set, null))
                .orElse(room / 2);
        String where = offHeap ? OFF_HEAP_SIZE : "spark.executor.memoryOverhead";
        if (wanted > room) {
            throw new ConfigurationException(PluginSetting.PINNED.key() + " is " + wanted + " bytes, but " + where
                    + " has only " + room + ": raise the latter, since pinned memory counts towards it");
        }
        return wanted;
    }

    private static boolean isOffHeap(SparkConf conf) {
        return conf.getBoolean(OFF_HEAP, false);
    }

    /// Returns the bytes for spilled buffers.
    long spillBytes() {
        return byteSize - stagingBytes();
    }

    /// Returns the bytes for copies from and to rows.
    long stagingBytes() {
        return byteSize / 4;
    }

    /// Releases the reservation of Spark's off-heap memory, if there is one.
    void giveBack(SparkEnv env) {
        if (reserved) {
            env.memoryManager().releaseStorageMemory(byteSize, MemoryMode.OFF_HEAP);
        }
    }

    private static long overhead(SparkConf conf) {
        long heap = conf.getSizeAsMb("spark.executor.memory", "1g") * MEBI;
        double factor = conf.getDouble("spark.executor.memoryOverheadFactor", 0.1);
        long usual = Math.max((long) (heap * factor), MIN_OVERHEAD);
        return conf.getSizeAsMb("spark.executor.memoryOverhead", usual / MEBI + "m") * MEBI;
    }
}
