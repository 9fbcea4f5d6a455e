package io.cistern;

import io.cistern.diagnostics.ReclaimStep;
import io.cistern.diagnostics.LeakLevel;
import io.cistern.errors.ConfigurationException;
import io.cistern.cuda.CudaDriver;
import io.cistern.cuda.settings.IllegalSettingException;
import io.cistern.cuda.settings.Setting;
import io.cistern.cuda.settings.Settings;
import io.cistern.internal.leaks.ConfiguredLeakLevel;
import io.cistern.internal.names.SettingProblems;
import io.cistern.internal.routing.Budget;
import io.cistern.internal.routing.Budgets;
import io.cistern.spi.catalog.Catalog;
import java.time.Duration;
import java.util.EnumSet;
import java.util.List;
import java.util.Set;
import org.jspecify.annotations.Nullable;

/// How to open [DeviceMemory].
///
/// **Threads.** One thread at a time.
public final class DeviceMemoryBuilder {
    final CudaDriver driver;
    private @Nullable Catalog catalog;
    private final Settings settings = Settings.ofProcess();
    Set<ReclaimStep> reclaimSteps = EnumSet.allOf(ReclaimStep.class);
    Duration longestWait = Duration.ZERO;
    private long limitBytes = -1;
    private @Nullable MemoryLimit limit;
    LeakLevel leakLevel = ConfiguredLeakLevel.in(settings);
    boolean reportScopes = settings.isTrue(Setting.SCOPES_REPORT);

    DeviceMemoryBuilder(CudaDriver driver) {
        this.driver = driver;
    }

    /// What can be opened by name.
    Catalog catalog() {
        return catalog != null ? catalog : Catalog.of(List.of(), List.of());
    }

    /// The allocators and sources that can be opened by name; none without this call.
    public DeviceMemoryBuilder catalog(Catalog catalog) {
        this.catalog = catalog;
        return this;
    }

    /// A limit on the bytes requested on each device, over all allocators: never exceeded, and nothing
    /// that fits is refused. Without this call the settings `cistern.device.N.limit` and `cistern.limit` say.
    ///
    /// @throws IllegalArgumentException if it is negative
    public DeviceMemoryBuilder limitBytes(long limitBytes) {
        if (limitBytes < 0) {
            throw new IllegalArgumentException("limitBytes is negative: " + limitBytes);
        }
        this.limitBytes = limitBytes;
        return this;
    }

    /// A limit on the bytes requested on all devices together, over all allocators, which may span
    /// several device memories.
    public DeviceMemoryBuilder limit(MemoryLimit limit) {
        this.limit = limit;
        return this;
    }

    /// How much is kept about live blocks; without this call what setting `cistern.leaks` says, `off` by
    /// default.
    public DeviceMemoryBuilder leakLevel(LeakLevel leakLevel) {
        this.leakLevel = leakLevel;
        return this;
    }

    /// What is tried when there is no memory for a request; all of it without this call. A step of an allocator's
    /// own is the business of its options.
    public DeviceMemoryBuilder reclaimSteps(Set<ReclaimStep> steps) {
        reclaimSteps = Set.copyOf(steps);
        return this;
    }

    /// How long a request may wait for other threads to free memory, if nothing else helped: not at all without
    /// this call, which a program with one thread is best served by.
    ///
    /// @throws IllegalArgumentException if it is negative
    public DeviceMemoryBuilder waitForFrees(Duration longest) {
        if (longest.isNegative()) {
            throw new IllegalArgumentException("longest is negative: " + longest);
        }
        longestWait = longest;
        return this;
    }

    /// What all blocks on a device are charged to.
    @Nullable
    Budgets budgets(int device) {
        Budgets whole = Budgets.of(null, limit == null ? null : limit.handle().budget());
        long most = limitBytes < 0 ? setLimit(device) : limitBytes;
        return most < 0 ? whole : Budgets.of(whole, new Budget("device " + device, most, null));
    }

    /// @throws ConfigurationException if what is set is no number of bytes
    private long setLimit(int device) {
        return settings.get(Setting.DEVICE_LIMIT, Setting.LIMIT, device)
                .map(DeviceMemoryBuilder::bytes)
                .orElse(-1L);
    }

    private static long bytes(Settings.Value set) {
        try {
            return set.bytes();
        } catch (IllegalSettingException e) {
            throw new ConfigurationException(String.valueOf(e.getMessage()), e);
        }
    }

    /// Whether to report mistakes with scopes, once for each place in the program, as a warning of the logger
    /// `io.cistern.scopes`. Without this call the setting `cistern.scopes.report` says.
    ///
    /// **Not carried.** A thread allocates outside every scope while another thread is in one that would have
    /// served: most likely a worker to which the scope was not carried. The warning names the place that allocates.
    ///
    /// **Forgotten.** A scope was dropped without close, or is open when its pool closes in the same thread or
    /// after its thread has ended, or when the device memory closes. The warning names the place that entered it.
    ///
    /// It makes allocations outside scopes, and entering one, slower; off, it costs nothing.
    public DeviceMemoryBuilder reportScopes(boolean report) {
        this.reportScopes = report;
        return this;
    }

    /// Opens it.
    ///
    /// @throws ConfigurationException if a limit that is set is no number of bytes
    public DeviceMemory open() {
        for (String problem :
                SettingProblems.ofAbsentDevices(settings, driver.devices().count())) {
            System.getLogger(DeviceMemoryBuilder.class.getName()).log(System.Logger.Level.WARNING, problem);
        }
        return new DeviceMemory(this);
    }
}
