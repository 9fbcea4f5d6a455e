package io.cistern.observability.setting;

import io.cistern.DeviceMemory;
import io.cistern.ModuleSupport;
import io.cistern.observability.HistoryOptions;
import io.cistern.observability.MemoryHistory;
import io.cistern.observability.OutOfMemorySnapshots;
import io.cistern.observability.jfr.FlightEvents;
import io.cistern.observability.jmx.MemoryBeans;
import io.cistern.observability.nvtx.NvtxRanges;
import java.nio.file.Path;
import java.util.function.Consumer;

/// The observers that the setting `cistern.observe` names. [java.util.ServiceLoader] creates them.
public final class Observers {
    private static final int MAX_FILES = 3;

    private Observers() {}

    abstract static class Named implements ModuleSupport.Observer {
        private final String name;
        private final Consumer<DeviceMemory> start;

        Named(String name, Consumer<DeviceMemory> start) {
            this.name = name;
            this.start = start;
        }

        @Override
        public final String name() {
            return name;
        }

        @Override
        public final void observe(DeviceMemory memory) {
            start.accept(memory);
        }
    }

    /// Starts a [MemoryHistory] with stacks.
    public static final class History extends Named {
        public History() {
            super("history", memory -> MemoryHistory.of(memory).start(HistoryOptions.withStacks()));
        }
    }

    /// Writes snapshots of a few refused requests to the working directory.
    public static final class Snapshots extends Named {
        public Snapshots() {
            super("snapshots", memory -> OutOfMemorySnapshots.writeTo(memory, Path.of(""), MAX_FILES));
        }
    }

    /// Writes events of Java Flight Recorder.
    public static final class Flight extends Named {
        public Flight() {
            super("jfr", FlightEvents::register);
        }
    }

    /// Registers a bean.
    public static final class Beans extends Named {
        public Beans() {
            super("jmx", MemoryBeans::register);
        }
    }

    /// Shows ranges in profilers.
    public static final class Nvtx extends Named {
        public Nvtx() {
            super("nvtx", NvtxRanges::register);
        }
    }
}
