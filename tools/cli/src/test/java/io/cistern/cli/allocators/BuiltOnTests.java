package io.cistern.cli.allocators;

import static org.assertj.core.api.Assertions.assertThat;

import io.cistern.Allocator;
import io.cistern.DeviceMemory;
import io.cistern.MemoryPool;
import io.cistern.OpenOptions;
import io.cistern.simulated.SimulatedGpu;
import io.cistern.spi.AllocatorAdaptor;
import io.cistern.spi.DeviceAllocator;
import java.util.ArrayList;
import java.util.List;
import java.util.function.BiConsumer;
import java.util.function.Supplier;
import java.util.stream.IntStream;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.MethodSource;

/// An allocator and what is built on it are closed, and the last block freed, in every order.
final class BuiltOnTests {
    private static final long BLOCK_BYTES = 30 << 20;

    /// Builds on an allocator, and takes a block.
    private enum Way {
        AS_UPSTREAM {
            @Override
            List<Runnable> steps(DeviceMemory memory, Allocator base) {
                return closingAndFreeing(base.asUpstream());
            }
        },
        MADE {
            @Override
            List<Runnable> steps(DeviceMemory memory, Allocator base) {
                DeviceAllocator upstream = base.asUpstream();
                List<Runnable> steps = closingAndFreeing(
                        memory, memory.open(OpenOptions.made("over", new AllocatorAdaptor(upstream) {})));
                steps.add(upstream::close);
                return steps;
            }
        },
        AROUND {
            @Override
            List<Runnable> steps(DeviceMemory memory, Allocator base) {
                return closingAndFreeing(memory, around(memory, base));
            }
        },
        AS_UPSTREAM_OF_AROUND {
            @Override
            List<Runnable> steps(DeviceMemory memory, Allocator base) {
                Allocator around = around(memory, base);
                List<Runnable> steps = closingAndFreeing(around.asUpstream());
                steps.add(around::close);
                return steps;
            }
        },
        POOL {
            @Override
            List<Runnable> steps(DeviceMemory memory, Allocator base) {
                return closingAndFreeing(
                        memory, MemoryPool.builder(memory).upstream(base).open());
            }
        },
        AS_UPSTREAM_OF_POOL {
            @Override
            List<Runnable> steps(DeviceMemory memory, Allocator base) {
                MemoryPool pool = MemoryPool.builder(memory).upstream(base).open();
                List<Runnable> steps = closingAndFreeing(pool.asUpstream());
                steps.add(pool::close);
                return steps;
            }
        };

        /// Returns the steps that end it and free the block, to be taken in any order.
        abstract List<Runnable> steps(DeviceMemory memory, Allocator base);

        private static Allocator around(DeviceMemory memory, Allocator base) {
            return memory.open(OpenOptions.around("around", base, upstream -> new AllocatorAdaptor(upstream) {}));
        }

        private static List<Runnable> closingAndFreeing(DeviceAllocator upstream) {
            long block = upstream.allocate(BLOCK_BYTES, 0, 0);
            return new ArrayList<>(List.of(upstream::close, () -> upstream.free(block, BLOCK_BYTES, 0, 0)));
        }

        private static List<Runnable> closingAndFreeing(DeviceMemory memory, Allocator over) {
            long block = over.allocate(BLOCK_BYTES, 0, 0);
            return new ArrayList<>(List.of(over::close, () -> memory.free(block, 0)));
        }
    }

    static List<String> specs() {
        return EveryAllocator.specs();
    }

    @ParameterizedTest
    @MethodSource("specs")
    void allMemoryIsBackAtTheEnd(String spec) {
        try (SimulatedGpu gpu = EveryAllocator.gpu();
                DeviceMemory memory = EveryAllocator.memory(gpu)) {
            List<Long> freeBytes = new ArrayList<>();
            inEveryOrder(memory, () -> memory.open(spec), (base, order) -> {
                assertThat(base.isDrained()).as(order).isTrue();
                assertThat(memory.allocators()).as(order).isEmpty();
                gpu.devices().synchronize(0);
                freeBytes.add(gpu.memory().freeBytes(0)); // the first time without what the driver keeps for itself
                assertThat(gpu.memory().freeBytes(0)).as(order).isEqualTo(freeBytes.getFirst());
            });
            assertThat(gpu.misuses()).isEmpty();
        }
    }

    @Test
    void theObjectOfAPlugInIsClosedOnceAfterItsLastFree() {
        try (SimulatedGpu gpu = EveryAllocator.gpu();
                DeviceMemory memory = EveryAllocator.memory(gpu)) {
            List<String> calls = new ArrayList<>();
            inEveryOrder(
                    memory, () -> memory.open(OpenOptions.made("noting", new Noting(memory, calls))), (_, order) -> {
                        assertThat(calls).as(order).containsExactly("free", "close");
                        calls.clear();
                    });
        }
    }

    /// @param check receives the allocator and a name of the order
    private static void inEveryOrder(
            DeviceMemory memory, Supplier<Allocator> opening, BiConsumer<Allocator, String> check) {
        for (Way way : Way.values()) {
            int orders = 1;
            for (int order = 0; order < orders; order++) {
                Allocator base = opening.get();
                List<Runnable> steps = way.steps(memory, base);
                steps.add(base::close);
                orders = IntStream.rangeClosed(1, steps.size()).reduce(1, (product, count) -> product * count);
                for (int rest = order, left = steps.size(); left > 0; rest /= left, left--) {
                    steps.remove(rest % left).run();
                }
                check.accept(base, way + ", order " + order);
            }
        }
    }

    /// Notes frees and closes.
    private static final class Noting extends AllocatorAdaptor {
        private final List<String> calls;

        Noting(DeviceMemory memory, List<String> calls) {
            super(memory.current(0).asUpstream());
            this.calls = calls;
        }

        @Override
        public void free(long address, long byteSize, int device, long stream) {
            super.free(address, byteSize, device, stream);
            calls.add("free");
        }

        @Override
        public void close() {
            calls.add("close");
        }
    }
}
