package io.cistern.examples;

import com.google.inject.Guice;
import com.google.inject.Inject;
import com.google.inject.Injector;
import io.cistern.Allocator;
import io.cistern.DeviceMemory;
import io.cistern.MemoryPool;
import io.cistern.cuda.CudaDriver;
import io.cistern.cuda.CudaDrivers;
import io.cistern.guice.CisternLifecycle;
import io.cistern.guice.CisternModule;
import io.cistern.guice.InPool;
import io.cistern.guice.Pool;

/// An application assembled by Guice: it declares its pools in one place, and its methods run in them.
///
/// **Dependencies:** `io.cistern:cistern`, `io.cistern:cistern-guice`.
public final class GuiceApplication {
    private GuiceApplication() {}

    /// Runs the example.
    public static void main(String[] arguments) {
        try (CudaDriver driver = CudaDrivers.openBest()) {
            Injector injector = Guice.createInjector(
                    CisternModule.on(driver).current("caching").pool("gradients", "caching:fit=tight", 1L << 30));
            try (CisternLifecycle _ = injector.getInstance(CisternLifecycle.class)) {
                injector.getInstance(Trainer.class).run();
            }
        }
    }

    static class Trainer {
        private static final int DEVICE = 0;

        private final DeviceMemory memory;
        private final Allocator current;
        private final MemoryPool gradients;

        @Inject
        Trainer(DeviceMemory memory, Allocator current, @Pool("gradients") MemoryPool gradients) {
            this.memory = memory;
            this.current = current;
            this.gradients = gradients;
        }

        void run() {
            long activation = memory.allocate(1000, DEVICE, 0);
            long gradient = backward();
            System.out.printf(
                    "%d block from %s, %d from %s%n",
                    current.statistics(DEVICE).liveBlocks(),
                    current.name(),
                    gradients.liveBlockCount(),
                    gradients.tag());
            memory.free(activation, 0);
            memory.free(gradient, 0);
        }

        @InPool("gradients")
        long backward() {
            return memory.allocate(1000, DEVICE, 0);
        }
    }
}
