package io.cistern.internal.registry;

import io.cistern.diagnostics.ReclaimStep;
import io.cistern.errors.ConfigurationException;
import io.cistern.internal.direct.DeviceReserves;
import io.cistern.internal.names.ClosingSteps;
import io.cistern.internal.names.FailureNote;
import io.cistern.internal.options.SpecOptions;
import io.cistern.internal.order.EventOrder;
import io.cistern.internal.routing.ReservedBytes;
import io.cistern.spi.AllocatorContext;
import io.cistern.spi.AllocatorProvider;
import io.cistern.spi.Availability;
import io.cistern.spi.DeviceAllocator;
import io.cistern.spi.DeviceEnvironment;
import io.cistern.spi.EventSink;
import io.cistern.spi.MemoryReclaim;
import io.cistern.spi.SegmentSource;
import io.cistern.spi.SegmentSourceProvider;
import io.cistern.spi.StreamOrder;
import io.cistern.spi.options.AllocatorOptions;
import io.cistern.spi.options.AllocatorSpec;
import io.cistern.spi.options.SpecOption;
import java.util.EnumSet;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Set;
import java.util.function.Supplier;
import org.jspecify.annotations.Nullable;

/// The context of one open plug-in. Upstream allocators and segment sources that the plug-in
/// opened here are closed after it, in reverse order.
public final class OpenContext implements AllocatorContext {
    private static final String ALLOCATOR = "allocator ";
    private static final String SOURCE = "segment source ";

    /// Enough for the pending fences of some tens of streams.
    private static final int MAX_IDLE_EVENTS = 64;

    private final Registry registry;

    /// The kind and the spec of the plug-in that opens here.
    private final String opening;

    /// The context that opens this one's plug-in to build on; null if a program or the framework opens it.
    private final @Nullable OpenContext outer;

    private final SpecOptions options;
    private final Map<String, SegmentSource> ownSources;
    private final StreamOrder streams;
    private final ReservedBytes reserved;
    private final MemoryReclaim.Choice reclaimChoice;

    /// Made in advance, since closing happens once and the Java heap may be full then.
    private final ClosingSteps closings = new ClosingSteps();

    /// Whether the plug-in has asked for the reserves, to respect them itself.
    private boolean mindsReserves;

    /// Whether it builds on other allocators or on segment sources, which respect them.
    private boolean isBuiltOnOthers;

    /// Prepares to open a plug-in from a spec.
    ///
    /// @param name the allocator's name in events
    /// @param ownSources open sources by name. The plug-in, and those that it builds on, find them before those
    ///     of the catalogue. They are not closed here
    /// @param order orders captured streams, for a plug-in that serves graphs; null for any other
    public OpenContext(
            Registry registry,
            AllocatorSpec spec,
            String name,
            Map<String, SegmentSource> ownSources,
            @Nullable StreamOrder order) {
        this(
                registry,
                ALLOCATOR + spec,
                null,
                options(registry, spec),
                ownSources,
                registry.reserved(name),
                order == null ? inCall(registry) : whole(registry),
                order);
    }

    /// @param order null to create one
    private OpenContext(
            Registry registry,
            String opening,
            @Nullable OpenContext outer,
            SpecOptions options,
            Map<String, SegmentSource> ownSources,
            ReservedBytes reserved,
            MemoryReclaim.Choice reclaimChoice,
            @Nullable StreamOrder order) {
        this.reserved = reserved;
        this.reclaimChoice = reclaimChoice;
        this.registry = registry;
        this.opening = opening;
        this.outer = outer;
        this.ownSources = Map.copyOf(ownSources);
        this.options = options;
        this.streams = order != null ? order : ownOrder();
    }

    private static SpecOptions options(Registry registry, AllocatorSpec spec) {
        return new SpecOptions(spec, registry.environment());
    }

    private EventOrder ownOrder() {
        EventOrder order = new EventOrder(registry.driver(), MAX_IDLE_EVENTS);
        closings.addFirst(order::close);
        return order;
    }

    /// Returns the choice for an allocator that routes lead to. The framework asks it for the other steps
    /// later, after callbacks and pools that lend.
    private static MemoryReclaim.Choice inCall(Registry registry) {
        Set<ReclaimStep> steps = EnumSet.noneOf(ReclaimStep.class);
        steps.addAll(registry.reclaimSteps());
        steps.removeAll(EnumSet.of(ReclaimStep.TRIM, ReclaimStep.SYNCHRONIZE));
        return new MemoryReclaim.Choice(steps, true);
    }

    /// Returns the choice for an adaptor's upstream, since the adaptor may decide within the call, and for
    /// an allocator that serves graphs, which is not asked again.
    private static MemoryReclaim.Choice whole(Registry registry) {
        return new MemoryReclaim.Choice(registry.reclaimSteps());
    }

    /// Returns the reports of the plug-in, and of all that it is built on, about the memory that they hold.
    public ReservedBytes reserved() {
        return reserved;
    }

    /// Opens a plug-in, and refuses options that it did not read. If that fails, everything that the
    /// plug-in opened is closed, and a note with the spec is added to the exception.
    ///
    /// @param declared the options that its provider declares
    public <T extends AutoCloseable> T open(
            Supplier<? extends List<? extends SpecOption<?>>> declared, Supplier<@Nullable T> opening) {
        try {
            T opened = opening.get();
            if (opened == null) {
                throw new ConfigurationException("'" + options.name() + "' can't be opened: its open() returns null");
            }
            try {
                options.rejectUnread(declared);
            } catch (ConfigurationException failure) {
                closeQuietly(opened, failure);
                throw failure;
            }
            return opened;
        } catch (Throwable failure) {
            FailureNote.add(failure, "while " + options.spec() + " was opened");
            closeQuietly(this::close, failure);
            throw failure;
        }
    }

    /// Opens an allocator as [#open] does. The result respects reserves.
    DeviceAllocator openAllocator(AllocatorProvider provider) {
        DeviceAllocator opened = open(provider::options, () -> provider.open(this));
        return mindsReserves || isBuiltOnOthers ? opened : new GuardedAllocator(opened, registry.reserves());
    }

    private static void closeQuietly(AutoCloseable opened, Throwable failure) {
        try {
            opened.close();
        } catch (Exception second) {
            failure.addSuppressed(second);
        }
    }

    /// Closes everything that the plug-in opened.
    ///
    /// @throws io.cistern.cuda.CudaException if a capture forbids it; then the next call resumes
    /// @throws RuntimeException the first failure, with the others suppressed in it; everything else is closed
    ///     then
    public void close() {
        closings.run();
    }

    @Override
    public AllocatorOptions options() {
        return options;
    }

    @Override
    public DeviceEnvironment devices() {
        return registry.environment();
    }

    @Override
    public EventSink events() {
        return reserved;
    }

    @Override
    public DeviceAllocator upstream(String spec) {
        AllocatorSpec parsed = registry.resolve(AllocatorSpec.parse(spec));
        AllocatorProvider provider = registry.catalog().allocator(parsed.name());
        requireAvailable("allocator", parsed.name(), provider.availability(devices()));
        OpenContext context = nested(ALLOCATOR + parsed, options(registry, parsed));
        DeviceAllocator upstream = context.openAllocator(provider);
        isBuiltOnOthers = true;
        closings.addFirst(context::close);
        closings.addFirst(FailureNote.adding(ALLOCATOR + parsed + " was closing", upstream::close));
        return upstream;
    }

    @Override
    public SegmentSource segments(String spec) {
        AllocatorSpec parsed = AllocatorSpec.parse(spec);
        isBuiltOnOthers = true;
        SegmentSource own = ownSources.get(parsed.name());
        if (own != null) {
            return GuardedSource.of(
                    parsed.name(), own, own.extension(DeviceReserves.class).orElse(registry.reserves()));
        }
        SegmentSourceProvider provider = registry.catalog().source(parsed.name());
        requireAvailable("segment source", parsed.name(), provider.availability(devices()));
        OpenContext context = nested(SOURCE + parsed, options.ofSource(parsed));
        SegmentSource source = context.open(provider::options, () -> provider.open(context));
        closings.addFirst(context::close);
        closings.addFirst(FailureNote.adding(SOURCE + parsed + " was closing", source::close));
        return parsed.name().equals("managed")
                ? source // the driver moves it to the host when others need the device
                : GuardedSource.of(parsed.name(), source, context.reservesToMind());
    }

    /// Returns the reserves to enforce around a source: none if the source respects them itself.
    private DeviceReserves reservesToMind() {
        return mindsReserves
                ? new DeviceReserves(registry.driver(), registry.environment().deviceCount())
                : registry.reserves();
    }

    /// @throws ConfigurationException if it is already being opened, so that opening would never end
    private OpenContext nested(String inner, SpecOptions given) {
        for (OpenContext each = this; each != null; each = each.outer) {
            if (each.opening.equals(inner)) {
                throw new ConfigurationException(
                        inner + " refers to itself" + (each.equals(this) ? "" : ", through " + opening));
            }
        }
        return new OpenContext(registry, inner, this, given, ownSources, reserved, whole(registry), null);
    }

    static void requireAvailable(String kind, String name, Availability availability) {
        if (!availability.available()) {
            throw new ConfigurationException(kind + " " + name + " can't run here: " + availability.reason());
        }
    }

    @Override
    public StreamOrder streams() {
        return streams;
    }

    @Override
    public <T> Optional<T> extension(Class<T> type) {
        if (type == MemoryReclaim.Choice.class) {
            return Optional.of(type.cast(reclaimChoice));
        }
        if (type == DeviceReserves.class) {
            mindsReserves = true;
            return Optional.of(type.cast(registry.reserves()));
        }
        return type.isInstance(registry.driver()) ? Optional.of(type.cast(registry.driver())) : Optional.empty();
    }
}
