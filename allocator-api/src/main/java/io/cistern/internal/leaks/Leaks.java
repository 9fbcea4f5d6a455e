package io.cistern.internal.leaks;

import io.cistern.cuda.settings.Setting;
import io.cistern.cuda.settings.Settings;
import io.cistern.diagnostics.KeptBlock;
import io.cistern.diagnostics.LeakLevel;
import io.cistern.diagnostics.LiveBlock;
import io.cistern.internal.routing.Route;
import io.cistern.internal.routing.Router;
import java.lang.System.Logger.Level;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collections;
import java.util.List;
import java.util.Optional;
import java.util.OptionalLong;
import java.util.Set;
import java.util.WeakHashMap;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.function.Consumer;
import java.util.function.Predicate;
import org.jspecify.annotations.Nullable;

/// Reports the live blocks of one device memory, at the times that its [LeakLevel] names. Nothing here
/// throws.
public final class Leaks implements AutoCloseable {
    /// The instances that report at the end of the process; guarded by itself.
    private static final Set<Leaks> ENDING = Collections.newSetFromMap(new WeakHashMap<>());

    /// Reports at the end of the process. Null while no report is due, since it would keep the class loader
    /// reachable. Guarded by `ENDING`.
    private static @Nullable Thread hook;

    /// Whether other code runs the report at the end of the process.
    private static final AtomicBoolean OTHERS_REPORT = new AtomicBoolean();

    private final Router router;
    private final BlockSites sites;

    public Leaks(Router router, LeakLevel level) {
        this.router = router;
        this.sites = new BlockSites(level);
        if (sites.isOn()) {
            reportAtExit();
        }
    }

    private void reportAtExit() {
        synchronized (ENDING) {
            ENDING.add(this);
            if (hook == null) {
                Thread reporting = Thread.ofPlatform()
                        .name("cistern-leaks")
                        .inheritInheritableThreadLocals(false)
                        .unstarted(Leaks::reportUnlessOthers);
                whileRunning(() -> Runtime.getRuntime().addShutdownHook(reporting));
                hook = reporting;
            }
        }
    }

    /// Cancels the report at the end of the process, unless blocks are still alive.
    @Override
    public void close() {
        if (!sites.isOn()) {
            return;
        }
        boolean[] any = new boolean[1];
        router.forEachLive((_, _, _) -> any[0] = true);
        synchronized (ENDING) {
            if (!any[0] && ENDING.remove(this) && ENDING.isEmpty() && hook != null) {
                Thread idle = hook;
                whileRunning(() -> Runtime.getRuntime().removeShutdownHook(idle));
                hook = null;
            }
        }
    }

    /// Adds or removes a hook, unless the process is already ending.
    private static void whileRunning(Runnable change) {
        try {
            change.run();
        } catch (IllegalStateException ending) {
            // The process is already ending.
        }
    }

    /// Returns the level that setting `cistern.leaks` names. [Settings.Value#check] refuses an unknown name.
    public static LeakLevel levelIn(Settings settings) {
        String set = settings.get(Setting.LEAKS).map(Settings.Value::text).orElse("");
        return Arrays.stream(LeakLevel.values())
                .filter(level -> level.name().equalsIgnoreCase(set))
                .findFirst()
                .orElse(LeakLevel.OFF);
    }

    /// Lets other code report at the end of the process, after everything that may still free blocks has
    /// ended.
    ///
    /// @param atEnd receives the action that reports; called at most once in a process
    public static void reportBy(Consumer<Runnable> atEnd) {
        if (!OTHERS_REPORT.getAndSet(true)) {
            atEnd.accept(Leaks::reportAll);
        }
    }

    public BlockSites sites() {
        return sites;
    }

    /// Returns the live blocks of some routes, without those that programs have freed and graphs keep.
    public List<LiveBlock> blocks(Predicate<Route> wanted) {
        List<LiveBlock> blocks = new ArrayList<>();
        router.forEachLive((address, byteSize, route) -> {
            if (wanted.test(route)) {
                blocks.add(block(address, byteSize, route));
            }
        });
        return blocks;
    }

    /// Returns the blocks that programs have freed and graphs keep.
    public List<KeptBlock> kept() {
        List<KeptBlock> blocks = new ArrayList<>();
        router.forEachKept((address, byteSize, route) -> {
            String keeper = router.keeper(address);
            if (keeper != null) {
                blocks.add(new KeptBlock(address, byteSize, route.device(), route.toString(), keeper));
            }
        });
        return blocks;
    }

    /// Returns the bytes of a device's blocks whose buffers were dropped. It resolves no call stack, unlike [#blocks].
    public long droppedBytes(int device) {
        long[] sum = new long[1];
        router.forEachLive((address, byteSize, route) -> {
            BlockSites.Site site = route.device() == device ? sites.find(address) : null;
            if (site != null && site.unreachable) {
                sum[0] += byteSize;
            }
        });
        return sum[0];
    }

    private LiveBlock block(long address, long byteSize, Route route) {
        BlockSites.Site site = sites.find(address);
        return new LiveBlock(
                address,
                byteSize,
                route.device(),
                route.toString(),
                site == null ? OptionalLong.empty() : OptionalLong.of(site.stream),
                site == null ? Optional.empty() : Optional.of(site.age()),
                site == null ? List.of() : site.frames(),
                site == null ? Optional.empty() : site.thread,
                site != null && site.unreachable);
    }

    /// Logs the live blocks of an allocator that closes.
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

    /// Watches a buffer, if the level says so. A dropped buffer is reported only if its block is alive, since most
    /// closes that throw have freed it.
    ///
    /// @return the watch; null if the buffer is not watched
    public @Nullable DropWatch watch(Object buffer, long address) {
        if (address == 0 || !sites.watchesBuffers()) {
            return null;
        }
        BlockSites.Site site = sites.find(address);
        return new DropWatch(buffer, () -> dropped(address, site));
    }

    /// @param site the record of the buffer's block, which a later block at the address doesn't share; null if there is
    ///     none
    @SuppressWarnings("ReferenceEquality")
    private void dropped(long address, BlockSites.@Nullable Site site) {
        LiveBlock block = router.ofLive(address, (at, byteSize, route) -> {
            if (sites.find(at) != site || router.isKept(at)) {
                return null;
            }
            if (site != null) {
                site.unreachable = true;
            }
            return block(at, byteSize, route);
        });
        if (block != null) {
            log().log(Level.WARNING, LeakReport.text("a buffer was dropped without being closed", List.of(block)));
        }
    }

    private static void reportUnlessOthers() {
        if (!OTHERS_REPORT.get()) {
            reportAll();
        }
    }

    /// Reports to standard error, since loggers may already be shut down.
    @SuppressWarnings({"CatchingUnchecked", "SystemOut"})
    private static void reportAll() {
        List<Leaks> all;
        synchronized (ENDING) {
            all = List.copyOf(ENDING);
        }
        for (Leaks leaks : all) {
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

    private static System.Logger log() {
        return System.getLogger(Leaks.class.getName());
    }
}
