package io.cistern;

import io.cistern.diagnostics.LeakLevel;
import io.cistern.diagnostics.LiveBlock;
import io.cistern.errors.UnknownAddressException;
import io.cistern.internal.leaks.BlockSites;
import io.cistern.internal.leaks.LeakReport;
import io.cistern.internal.leaks.Site;
import io.cistern.internal.routing.Route;
import io.cistern.internal.routing.Router;
import java.lang.System.Logger.Level;
import java.lang.ref.Cleaner;
import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import java.util.Optional;
import java.util.OptionalLong;
import java.util.Set;
import java.util.WeakHashMap;
import java.util.function.Predicate;
import org.jspecify.annotations.Nullable;

/// Tells which blocks of one device memory are alive, at the moments that its [LeakLevel] names. Nothing here
/// throws.
final class Leaks {
    /// Those that report at the end of the process.
    private static final Set<Leaks> ENDING =
            Collections.newSetFromMap(Collections.synchronizedMap(new WeakHashMap<>()));

    private final Router router;
    private final BlockSites sites;

    Leaks(Router router, LeakLevel level) {
        this.router = router;
        this.sites = new BlockSites(level);
        if (sites.isOn()) {
            AtExit.arrange();
            ENDING.add(this);
        }
    }

    BlockSites sites() {
        return sites;
    }

    /// Whether some routes have live blocks, also such as only graphs keep.
    boolean anyAlive(Predicate<Route> wanted) {
        boolean[] any = {false};
        router.forEachLive((_, _, route) -> any[0] |= wanted.test(route));
        return any[0];
    }

    /// The live blocks of some routes, without those that programs have freed and graphs keep.
    List<LiveBlock> blocks(Predicate<Route> wanted) {
        List<LiveBlock> blocks = new ArrayList<>();
        router.forEachLive((address, byteSize, route) -> {
            if (wanted.test(route) && !GraphMemory.keeps(route, address)) {
                blocks.add(block(address, byteSize, route));
            }
        });
        return blocks;
    }

    private LiveBlock block(long address, long byteSize, Route route) {
        Site site = sites.find(address);
        return new LiveBlock(
                address,
                byteSize,
                route.device(),
                route.toString(),
                site == null ? OptionalLong.empty() : OptionalLong.of(site.stream()),
                site == null ? Optional.empty() : Optional.of(site.age()),
                site == null ? List.of() : site.frames(),
                site == null ? Optional.empty() : site.thread(),
                site != null && site.isUnreachable());
    }

    /// Logs what an allocator that closes leaves alive.
    @SuppressWarnings("CatchingUnchecked") // a report must not keep the allocator from closing
    void closing(Allocator allocator, Predicate<Route> its) {
        if (!sites.isOn()) {
            return;
        }
        try {
            List<LiveBlock> blocks = blocks(its);
            if (!blocks.isEmpty()) {
                log().log(Level.WARNING, LeakReport.text("allocator " + allocator + " closes", blocks));
            }
        } catch (RuntimeException failure) {
            log().log(Level.WARNING, "the report of live blocks failed", failure);
        }
    }

    /// Whether buffers are watched.
    boolean watchesBuffers() {
        return sites.watchesBuffers();
    }

    /// Watches a buffer, where the level says so.
    ///
    /// @return what is told when the buffer is closed; null where it is not watched
    @Nullable
    BufferWatch watch(DeviceBuffer buffer, long address) {
        if (address == 0 || !sites.watchesBuffers()) {
            return null;
        }
        BufferWatch watch = new BufferWatch(this, address);
        watch.registered = Cleaners.CLEANER.register(buffer, watch);
        return watch;
    }

    private void dropped(long address) {
        Site site = sites.find(address);
        if (site != null) {
            site.becameUnreachable();
        }
        List<LiveBlock> blocks = new ArrayList<>();
        router.forEachLive((at, byteSize, route) -> {
            if (at == address) {
                blocks.add(block(at, byteSize, route));
            }
        });
        log().log(Level.WARNING, LeakReport.text("a buffer was dropped without close", blocks));
    }

    /// Runs when a buffer was closed, or when it is found to be unreachable.
    static final class BufferWatch implements Runnable, Lifetime {
        private final Leaks leaks;
        private final long address;
        private Cleaner.@Nullable Cleanable registered;
        private volatile boolean closed;

        BufferWatch(Leaks leaks, long address) {
            this.leaks = leaks;
            this.address = address;
        }

        /// Watches no more.
        void end() {
            closed = true;
            if (registered != null) {
                registered.clean();
            }
        }

        @Override
        public boolean isOver() {
            return false;
        }

        @Override
        public String whatEnded() {
            return "";
        }

        @Override
        public long block(long ofBuffer) {
            return ofBuffer;
        }

        @Override
        public void close(DeviceBuffer buffer, long ofBuffer) {
            end(() -> buffer.memory().free(ofBuffer, buffer.stream()));
        }

        @Override
        public void closeAfter(DeviceBuffer buffer, long ofBuffer, long event) {
            end(() -> buffer.memory().freeAfter(ofBuffer, event));
        }

        /// A block that was freed behind the buffer's back is not the buffer's any more either.
        private void end(Runnable free) {
            try {
                free.run();
            } catch (UnknownAddressException freedBefore) {
                end();
                throw freedBefore;
            }
            end();
        }

        @Override
        public void run() {
            if (!closed) {
                leaks.dropped(address);
            }
        }
    }

    /// Its thread starts with the first buffer or scope that is watched.
    static final class Cleaners {
        static final Cleaner CLEANER = Cleaner.create();
    }

    /// The report at the end of the process, which goes to standard error: loggers may have ended before.
    private static final class AtExit {
        static {
            Runtime.getRuntime().addShutdownHook(new Thread(AtExit::report, "cistern-leaks"));
        }

        /// Loads the class.
        static void arrange() {}

        @SuppressWarnings({"CatchingUnchecked", "SystemOut"})
        private static void report() {
            for (Leaks leaks : List.copyOf(ENDING)) {
                try {
                    List<LiveBlock> blocks = leaks.blocks(_ -> true);
                    if (!blocks.isEmpty()) {
                        System.err.println(LeakReport.text("the process ends", blocks));
                    }
                } catch (RuntimeException failure) {
                    System.err.println("the report of live blocks failed: " + failure);
                }
            }
        }
    }

    private static System.Logger log() {
        return System.getLogger(Leaks.class.getName());
    }
}
