package io.cistern.internal.reclaim;

import io.cistern.cuda.CudaDriver;
import io.cistern.cuda.DeviceProcesses;
import io.cistern.diagnostics.OutOfMemoryReport.ProcessMemory;
import java.util.ArrayList;
import java.util.List;
import java.util.OptionalLong;
import java.util.concurrent.TimeUnit;
import org.jspecify.annotations.Nullable;

/// Asks the system which other processes hold memory of a device. That takes long (the management library is
/// loaded and initialised), so a separate thread asks when a report is made. A thread that reads the answer
/// waits for it.
///
/// **Threads.** Any.
final class OtherProcesses {
    /// How long an answer is reused, since some programs run out of memory repeatedly.
    private static final long FRESH_NANOS = TimeUnit.SECONDS.toNanos(1);

    private final CudaDriver driver;
    private final @Nullable Answer[] answers;

    OtherProcesses(CudaDriver driver, int deviceCount) {
        this.driver = driver;
        this.answers = new Answer[deviceCount];
    }

    /// Asks, or returns the answer of a moment ago.
    synchronized List<ProcessMemory> ask(int device) {
        Answer recent = answers[device];
        if (recent != null && System.nanoTime() - recent.askedNanos < FRESH_NANOS) {
            return recent;
        }
        Answer answer = new Answer(driver, device);
        answers[device] = answer;
        try {
            Thread.ofPlatform()
                    .daemon()
                    .inheritInheritableThreadLocals(false) // nor the caller's class loader
                    .name("cistern-processes")
                    .start(answer);
        } catch (OutOfMemoryError noThread) {
            // The thread that reads the answer asks instead.
        }
        return answer;
    }

    private static final class Answer extends LazyList<ProcessMemory> implements Runnable {
        private final CudaDriver driver;
        private final int device;
        private final long askedNanos = System.nanoTime();

        Answer(CudaDriver driver, int device) {
            this.driver = driver;
            this.device = device;
        }

        @Override
        public void run() {
            list();
        }

        @Override
        List<ProcessMemory> make() {
            List<ProcessMemory> all = new ArrayList<>();
            for (DeviceProcesses.Holding each : DeviceProcesses.others(driver, device)) {
                OptionalLong bytes = each.byteSize() < 0 ? OptionalLong.empty() : OptionalLong.of(each.byteSize());
                all.add(new ProcessMemory(each.processId(), bytes));
            }
            return List.copyOf(all);
        }
    }
}
