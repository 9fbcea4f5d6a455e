package io.cistern.site;

import ai.onnxruntime.OrtEnvironment;
import ai.onnxruntime.OrtSession;
import io.cistern.Allocator;
import io.cistern.CudaStream;
import io.cistern.DeviceMemory;
import io.cistern.MemoryPool;
import io.cistern.buffers.CudaModule;
import io.cistern.buffers.DeviceBuffer;
import io.cistern.cuda.CudaDriver;
import java.lang.foreign.MemorySegment;
import java.nio.file.Path;
import java.util.concurrent.ExecutorService;
import org.jspecify.annotations.NullUnmarked;

/// What samples call and do not show. Nothing here works: samples that run bring what they need.
@NullUnmarked
@SuppressWarnings("NullAway")
public class SampleScope {
    /// What the program has.
    public static DeviceMemory memory;

    public static CudaDriver driver;
    public static Allocator allocator;
    public static CudaStream stream;
    public static MemoryPool pool;
    public static DeviceBuffer buffer;
    public static CudaModule module;
    public static ExecutorService executor;
    public static OrtEnvironment environment;
    public static OrtSession.SessionOptions options;
    public static ForeignLibrary library;
    public static Cache cache;
    public static float[] floats;
    public static long address;
    public static long bytes;
    public static int device;
    public static int n;

    /// Other people's code.
    public interface ForeignLibrary {
        void beginCapture(long stream);

        long endCapture(long stream);

        void setAllocator(long malloc, long free);
    }

    /// What a program can spare.
    public interface Cache {
        void shrink(long bytes);
    }

    public static long create() {
        return 0;
    }

    public static void destroy(long handle) {}

    public static void setStream(long handle, long stream) {}

    public static void read(Path file, MemorySegment target) {}

    public static void work() {}

    public static void step() {}

    public static void launch(long address) {}

    public static void launch(long address, Object... more) {}

    public static void myCallOfCublas(Object handle) {}

    public static void fill(DeviceBuffer buffer) {}
}
