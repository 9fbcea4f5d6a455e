package io.cistern;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatExceptionOfType;
import static org.assertj.core.api.Assertions.assertThatIllegalStateException;

import io.cistern.cuda.CudaDriver;
import io.cistern.errors.ConfigurationException;
import io.cistern.errors.DeviceOutOfMemoryException;
import io.cistern.simulated.SimulatedGpu;
import io.cistern.spi.AllocatorAdaptor;
import io.cistern.spi.AllocatorContext;
import io.cistern.spi.AllocatorProvider;
import io.cistern.spi.Availability;
import io.cistern.spi.DeviceAllocator;
import io.cistern.spi.DeviceEnvironment;
import io.cistern.spi.RangeSource;
import io.cistern.spi.Segment;
import io.cistern.spi.SegmentSource;
import io.cistern.spi.SegmentSourceProvider;
import io.cistern.spi.catalog.Catalog;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.atomic.AtomicLong;
import org.jspecify.annotations.Nullable;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;

/// A plug-in that builds on another one, which builds on a source: `top` on `middle` on `ground`.
class PluginContextTests {
    private final SimulatedGpu gpu = SimulatedGpu.builder().devices(2).build();
    private final List<String> log = new ArrayList<>();
    private final Top top = new Top();
    private final Middle middle = new Middle();
    private final Ground ground = new Ground("ground");
    private final DeviceMemory memory = DeviceMemory.builder(gpu)
            .catalog(Catalog.of(List.of(top, middle), List.of(ground, new Ground("bedrock"))))
            .open();

    private final class Top implements AllocatorProvider {
        private Runnable whenOpened = () -> {};
        private boolean failsToClose;

        @Override
        public int spiVersion() {
            return SPI_VERSION;
        }

        @Override
        public String name() {
            return "top";
        }

        @Override
        public DeviceAllocator open(AllocatorContext context) {
            assertThat(context.extension(CudaDriver.class)).contains(gpu);
            assertThat(context.extension(String.class)).isEmpty();
            DeviceAllocator upstream = context.upstream("middle");
            whenOpened.run();
            return new AllocatorAdaptor(upstream) {
                @Override
                public void close() {
                    log.add("top closed");
                    if (failsToClose) {
                        throw new IllegalStateException("top is stuck");
                    }
                }
            };
        }
    }

    private final class Middle implements AllocatorProvider {
        private Availability availability = Availability.yes();
        private @Nullable String upstream;

        @Override
        public int spiVersion() {
            return SPI_VERSION;
        }

        @Override
        public String name() {
            return "middle";
        }

        @Override
        public Availability availability(DeviceEnvironment environment) {
            return availability;
        }

        @Override
        public DeviceAllocator open(AllocatorContext context) {
            if (upstream != null) {
                return context.upstream(upstream);
            }
            RangeSource source = context.ranges("ground");
            return new DeviceAllocator() {
                @Override
                public long allocate(long byteSize, int device, long stream) {
                    return source.acquire(byteSize, 256, device).address();
                }

                @Override
                public void free(long address, long byteSize, int device, long stream) {
                    source.release(new Segment(address, byteSize, device));
                }

                @Override
                public void close() {
                    log.add("middle closed");
                }
            };
        }
    }

    private final class Ground implements SegmentSourceProvider {
        private final String name;
        private Availability availability = Availability.yes();
        private boolean onBedrock;

        Ground(String name) {
            this.name = name;
        }

        @Override
        public int spiVersion() {
            return AllocatorProvider.SPI_VERSION;
        }

        @Override
        public String name() {
            return name;
        }

        @Override
        public Availability availability(DeviceEnvironment environment) {
            return availability;
        }

        @Override
        public SegmentSource open(AllocatorContext context) {
            if (onBedrock) {
                context.ranges("bedrock");
            }
            AtomicLong next = new AtomicLong(1 << 20);
            return new RangeSource() {
                @Override
                public Segment acquire(long byteSize, long byteAlignment, int device) {
                    return new Segment(next.getAndAdd(1 << 20), byteSize, device);
                }

                @Override
                public void release(Segment segment) {}

                @Override
                public void close() {
                    log.add(name + " closed");
                }
            };
        }
    }

    @AfterEach
    void close() {
        memory.close();
        assertThat(gpu.heldObjects()).containsOnlyKeys("pools");
        gpu.close();
    }

    @Test
    void whatAPluginIsBuiltOnClosesAfterIt() {
        Allocator allocator = memory.open("top");
        long block = allocator.allocate(100, 1, 0);
        allocator.close();
        assertThat(log).isEmpty();
        memory.free(block, 0);
        assertThat(log).containsExactly("top closed", "middle closed", "ground closed");
    }

    @Test
    void whatASourceIsBuiltOnClosesAfterIt() {
        ground.onBedrock = true;
        memory.open("middle").close();
        assertThat(log).containsExactly("middle closed", "ground closed", "bedrock closed");
    }

    @Test
    void aPoolThatCannotBeOpenedClosesItsOwnSource() {
        RangeSource own = new RangeSource() {
            @Override
            public Segment acquire(long byteSize, long byteAlignment, int device) {
                throw new AssertionError("nobody asks");
            }

            @Override
            public void release(Segment segment) {}

            @Override
            public void close() {
                log.add("own closed");
            }
        };
        assertThatExceptionOfType(ConfigurationException.class)
                .isThrownBy(() -> MemoryPool.builder(memory)
                        .spec("top:speed=9")
                        .source(own)
                        .open());
        assertThat(log).containsExactly("top closed", "middle closed", "ground closed", "own closed");
    }

    @Test
    void whatRefersToItselfIsRefused() {
        middle.upstream = "middle";
        assertThatExceptionOfType(ConfigurationException.class)
                .isThrownBy(() -> memory.open("middle"))
                .withMessage("allocator middle refers to itself");
        middle.upstream = "top";
        assertThatExceptionOfType(ConfigurationException.class)
                .isThrownBy(() -> memory.open("top"))
                .withMessage("allocator top refers to itself, through allocator middle");
        assertThat(memory.allocators()).isEmpty();
    }

    @Test
    void whatCannotRunHereIsRefusedWithTheReason() {
        ground.availability = Availability.no("the ground is wet");
        assertThatExceptionOfType(ConfigurationException.class)
                .isThrownBy(() -> memory.open("top"))
                .withMessage("segment source ground can't run here: the ground is wet");
        middle.availability = Availability.no("it is night");
        for (String spec : List.of("top", "middle")) {
            assertThatExceptionOfType(ConfigurationException.class)
                    .isThrownBy(() -> memory.open(spec))
                    .withMessage("allocator middle can't run here: it is night");
        }
        assertThat(memory.allocators()).isEmpty();
        assertThat(log).isEmpty();
    }

    @Test
    void aPluginWithOptionsThatItDidNotReadIsClosedAgain() {
        top.failsToClose = true;
        assertThatExceptionOfType(ConfigurationException.class)
                .isThrownBy(() -> memory.open("top:speed=9"))
                .withMessageContaining("'speed'")
                .satisfies(failure -> assertThat(failure.getSuppressed())
                        .anySatisfy(second -> assertThat(second).hasMessage("top is stuck")));
        assertThat(log).containsExactly("top closed", "middle closed", "ground closed");
    }

    @Test
    void aPluginThatFailsToOpenLeavesNothingOpen() {
        top.whenOpened = () -> {
            throw new IllegalStateException("no more");
        };
        assertThatIllegalStateException().isThrownBy(() -> memory.open("top")).withMessage("no more");
        assertThat(log).containsExactly("middle closed", "ground closed");
        assertThat(memory.allocators()).isEmpty();
    }

    /// Limits hold for all blocks, also of an allocator that is opened at that moment.
    @Test
    void aLimitThatBeginsMeanwhileHoldsForANewAllocator() {
        top.whenOpened = () -> {
            memory.limits().device(0).setByteSize(1000);
            memory.limits().device(1).setByteSize(500);
        };
        Allocator allocator = memory.open("top");
        assertThatExceptionOfType(DeviceOutOfMemoryException.class).isThrownBy(() -> allocator.allocate(1001, 0, 0));
        assertThatExceptionOfType(DeviceOutOfMemoryException.class).isThrownBy(() -> allocator.allocate(501, 1, 0));
        long block = allocator.allocate(1000, 0, 0);
        assertThat(memory.limits().device(0).usedBytes()).isEqualTo(1000);
        memory.free(block, 0);
    }

    @Test
    void nothingOpensOnceTheMemoryIsClosed() {
        Allocator allocator = memory.open("top");
        memory.close();
        log.clear();
        for (Runnable opening : List.<Runnable>of(
                () -> memory.open("top"),
                () -> memory.open(OpenOptions.made("made", new Closed())),
                () -> memory.setCurrent("top"),
                () -> memory.open(OpenOptions.around("around", allocator, made -> made)))) {
            assertThatIllegalStateException().isThrownBy(opening::run).withMessageContaining("is closed");
        }
        assertThat(log).isEmpty();
    }

    private final class Closed implements DeviceAllocator {
        @Override
        public long allocate(long byteSize, int device, long stream) {
            return 0;
        }

        @Override
        public void free(long address, long byteSize, int device, long stream) {}

        @Override
        public void close() {
            log.add("made closed");
        }
    }
}
