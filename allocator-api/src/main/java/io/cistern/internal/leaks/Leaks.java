package io.cistern.internal.leaks;

import io.cistern.diagnostics.LeakLevel;
import io.cistern.diagnostics.LiveBlock;
import io.cistern.internal.routing.FreedBlockKeeper;
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
public final class Leaks {
    /// Those that report at the end of the process.
    private static final Set<Leaks> ENDING =
            Collections.newSetFromMap(Collections.synchronizedMap(new WeakHashMap<>()));

    private final Router router;
    private final BlockSites sites;

    public Leaks(Router router, LeakLevel level) {
        this.router = router;
        this.sites = new BlockSites(level);
        if (sites.isOn()) {
            AtExit.arrange();
            ENDING.add(this);
        }
    }

    public BlockSites sites() {
        return sites;
    }

    /// Whether some routes have live blocks, also such as only graphs keep.
    public boolean anyAlive(Predicate<Route> wanted) {
        boolean[] any = {false};
        router.forEachLive((_, _, route) -> any[0] |= wanted.test(route));
        return any[0];
    }

    /// The live blocks of some routes, without those that programs have freed and graphs keep.
    public List<LiveBlock> blocks(Predicate<Route> wanted) {
        List<LiveBlock> blocks = new ArrayList<>();
        router.forEachLive((address, byteSize, route) -> {
            if (wanted.test(route) && !isKept(route, address)) {
                blocks.add(block(address, byteSize, route));
            }
        });
        return blocks;
    }

    private static boolean isKept(Route route, long address) {
        return route.usualExit() instanceof FreedBlockKeeper keeper && keeper.isKept(route, address);
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
    public void closing(String allocator, Predicate<Route> its) {
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

    /// Watches a buffer, where the level says so.
    ///
    /// @return what is told when the buffer is closed; null where it is not watched
    public @Nullable BufferWatch watch(Object buffer, long address) {
        if (address == 0 || !sites.watchesBuffers()) {
            return null;
        }
        Dropped dropped = new Dropped(this, address);
        return new BufferWatch(dropped, Cleaners.CLEANER.register(buffer, dropped));
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

    /// Knows whether a buffer was closed before it became unreachable.
    public static final class BufferWatch {
        private final Dropped dropped;
        private final Cleaner.Cleanable registered;

        private BufferWatch(Dropped dropped, Cleaner.Cleanable registered) {
            this.dropped = dropped;
            this.registered = registered;
        }

        /// Watches no more.
        public void end() {
            dropped.closed = true;
            registered.clean();
        }
    }

    /// Runs when a buffer was closed, or when it is found to be unreachable.
    private static final class Dropped implements Runnable {
        private final Leaks leaks;
        private final long address;
        private volatile boolean closed;

        Dropped(Leaks leaks, long address) {
            this.leaks = leaks;
            this.address = address;
        }

        @Override
        public void run() {
            if (!closed) {
                leaks.dropped(address);
            }
        }
    }

    /// The cleaner of what is watched. Its thread starts with the first buffer or scope that is watched.
    public static final class Cleaners {
        /// Runs what was registered, on a daemon thread.
        public static final Cleaner CLEANER = Cleaner.create();
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
