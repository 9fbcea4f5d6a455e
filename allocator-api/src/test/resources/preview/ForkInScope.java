import io.cistern.Allocator;
import io.cistern.DeviceMemory;
import io.cistern.OpenOptions;
import io.cistern.Scope;
import io.cistern.ScopeCarrier;
import io.cistern.ScopeOptions;
import io.cistern.simulated.SimulatedGpu;
import io.cistern.spi.DeviceAllocator;
import java.util.concurrent.Callable;
import java.util.concurrent.StructuredTaskScope;
import java.util.concurrent.StructuredTaskScope.Joiner;
import java.util.concurrent.StructuredTaskScope.Subtask;
import java.util.concurrent.ThreadFactory;
import java.util.concurrent.atomic.AtomicLong;

/// Prints who serves the subtasks of a structured task scope that is opened in a scope of a pool.
public final class ForkInScope {
    public static void main(String[] arguments) {
        DeviceMemory memory = DeviceMemory.builder(
                        SimulatedGpu.builder().capacityBytes(1 << 20).build())
                .open();
        memory.currents().set(memory.open(OpenOptions.made("current", new Counting(1L << 40))));
        Allocator pool = memory.open(OpenOptions.made("pool", new Counting(1L << 41)));
        Allocator inner = memory.open(OpenOptions.made("inner", new Counting(1L << 42)));
        ScopeCarrier outside = ScopeCarrier.capture(memory);
        forkAndPrint(memory, "outside", Thread.ofVirtual().factory(), outside, inner);
        pool.run(ScopeOptions.all(), () -> {
            forkAndPrint(memory, "virtual", Thread.ofVirtual().factory(), outside, inner);
            forkAndPrint(memory, "platform", Thread.ofPlatform().factory(), outside, inner);
        });
        try (Scope _ = pool.enter()) {
            System.out.println("entered: " + forked(() -> serving(memory)));
            ScopeCarrier here = ScopeCarrier.capture(memory);
            System.out.println("carried: " + forked(here.wrap((Callable<String>) () -> serving(memory))));
        }
        forkAndPrint(memory, "afterwards", Thread.ofPlatform().factory(), outside, inner);
    }

    private static String forked(Callable<String> task) {
        try (var scope = StructuredTaskScope.open()) {
            Subtask<String> subtask = scope.fork(task);
            scope.join();
            return subtask.get();
        } catch (InterruptedException stopped) {
            throw new IllegalStateException(stopped);
        }
    }

    private static void forkAndPrint(
            DeviceMemory memory, String name, ThreadFactory threads, ScopeCarrier outside, Allocator inner) {
        try (var scope = StructuredTaskScope.open(
                Joiner.<String>awaitAllSuccessfulOrThrow(), configuration -> configuration.withThreadFactory(threads))) {
            Subtask<String> plain = scope.fork(() -> serving(memory));
            Subtask<String> nested = scope.fork(() -> {
                try (Scope _ = inner.enter()) {
                    return serving(memory);
                }
            });
            Subtask<String> left = scope.fork(() -> outside.call(() -> serving(memory)) + "+" + serving(memory));
            scope.join();
            System.out.println(name + ": " + plain.get() + " " + nested.get() + " " + left.get());
        } catch (InterruptedException stopped) {
            throw new IllegalStateException(stopped);
        }
    }

    private static String serving(DeviceMemory memory) {
        long block = memory.allocate(100, 0, 0);
        memory.free(block, 0);
        return block < 1L << 41 ? "current" : block < 1L << 42 ? "pool" : "inner";
    }

    private static final class Counting implements DeviceAllocator {
        private final AtomicLong next;

        Counting(long base) {
            next = new AtomicLong(base);
        }

        @Override
        public long allocate(long byteSize, int device, long stream) {
            return next.getAndAdd(256);
        }

        @Override
        public void free(long address, long byteSize, int device, long stream) {}
    }
}
