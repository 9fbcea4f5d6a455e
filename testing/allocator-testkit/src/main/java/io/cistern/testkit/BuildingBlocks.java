package io.cistern.testkit;

import io.cistern.Allocator;
import io.cistern.spi.AllocatorContext;
import io.cistern.spi.AllocatorProvider;
import io.cistern.spi.DeviceAllocator;
import io.cistern.spi.MemoryReclaim;
import io.cistern.spi.MemorySharing;
import io.cistern.spi.PageSource;
import io.cistern.spi.RangeSource;
import io.cistern.spi.Segment;
import io.cistern.spi.SegmentSourceProvider;
import io.cistern.spi.StreamUses;
import io.cistern.spi.catalog.Catalog;
import java.lang.reflect.InvocationTargetException;
import java.lang.reflect.Method;
import java.lang.reflect.Proxy;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.Optional;
import java.util.Queue;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.ConcurrentLinkedQueue;
import org.jspecify.annotations.Nullable;

/// Watches what plug-ins build on: each block, range and handle that an [AllocatorContext] provides must go back
/// once, with the address, byte size and device with which it was obtained. A wrong call is kept as a finding,
/// and goes on with the right arguments, so that nothing else breaks. Any thread may call any method at any time.
final class BuildingBlocks {
    private static final Object[] NONE = {};

    /// Abilities whose calls concern blocks by their addresses.
    private static final List<Class<?>> OF_BLOCKS = List.of(StreamUses.class, MemorySharing.class);

    private final Queue<String> findings = new ConcurrentLinkedQueue<>();
    private final Queue<Watched> upstreams = new ConcurrentLinkedQueue<>();

    private interface Call {
        @Nullable
        Object on(Method method, Object[] arguments) throws Throwable;
    }

    /// Returns a catalogue of the same plug-ins, which are watched once they are opened.
    Catalog around(Catalog catalog) {
        return proxy(Catalog.class, (method, arguments) -> switch (answer(catalog, method, arguments)) {
            case AllocatorProvider provider -> watched(AllocatorProvider.class, provider, provider.name());
            case SegmentSourceProvider provider -> watched(SegmentSourceProvider.class, provider, provider.name());
            case Catalog refreshed -> around(refreshed);
            case Object other -> other;
        });
    }

    private <P> P watched(Class<P> type, P provider, String name) {
        return proxy(type, (method, arguments) -> {
            if (arguments.length == 1 && arguments[0] instanceof AllocatorContext context) {
                return invoke(provider, method, new Object[] {watched(context, name)});
            }
            return invoke(provider, method, arguments);
        });
    }

    private AllocatorContext watched(AllocatorContext context, String user) {
        return proxy(AllocatorContext.class, (method, arguments) -> switch (answer(context, method, arguments)) {
            case DeviceAllocator made -> {
                Watched upstream = new Watched(user, "upstream " + arguments[0]);
                upstreams.add(upstream);
                yield upstream.around(DeviceAllocator.class, made);
            }
            case RangeSource made -> new Watched(user, "source " + arguments[0]).around(RangeSource.class, made);
            case PageSource made -> new Watched(user, "source " + arguments[0]).around(PageSource.class, made);
            case Object other -> other;
        });
    }

    /// Fails if something went back wrongly.
    void assertSound() {
        Findings.assertNone("", findings.stream());
    }

    /// Notes that the program is about to free a block.
    void freed(long address) {
        upstreams.forEach(upstream -> upstream.freed(address));
    }

    /// Fails if an allocator hands out a freed block that it kept from its upstream, but passes on an ability of
    /// that upstream, which does not know of the free and of the new block.
    void handedOut(Allocator allocator, long address) {
        for (Watched upstream : upstreams) {
            if (upstream.isKept(address)) {
                OF_BLOCKS.forEach(ability -> upstream.refuseToPassOn(ability, allocator, address));
            }
        }
    }

    /// Keeps the memory that one plug-in has obtained from one upstream or source, by address or handle.
    private final class Watched {
        private final Map<Long, Segment> live = new ConcurrentHashMap<>();

        /// The blocks that the program has freed since they were obtained.
        private final Set<Long> freed = ConcurrentHashMap.newKeySet();

        /// The last object for each ability that the plug-in asked for.
        private final Map<Class<?>, Object> abilities = new ConcurrentHashMap<>();

        private final String user;
        private final String origin;

        Watched(String user, String origin) {
            this.user = user;
            this.origin = origin;
        }

        <T> T around(Class<T> type, T made) {
            return proxy(type, (method, arguments) -> switch (method.getName()) {
                case "allocate", "tryAllocate", "create" -> {
                    long address = (long) answer(made, method, arguments);
                    if (address != 0) {
                        freed.remove(address);
                        live.put(address, new Segment(address, (long) arguments[0], (int) arguments[1]));
                    }
                    yield address;
                }
                case "acquire" -> {
                    Segment segment = (Segment) answer(made, method, arguments);
                    live.put(segment.address(), segment);
                    yield segment;
                }
                case "free", "release", "tryRelease" -> giveBack(made, method, arguments);
                case "extension" ->
                    ((Optional<?>) answer(made, method, arguments))
                            .map(ability -> passed((Class<?>) arguments[0], ability));
                default -> invoke(made, method, arguments);
            });
        }

        private Object passed(Class<?> type, Object ability) {
            Object passed = ability instanceof MemoryReclaim reclaim && type == MemoryReclaim.class
                    ? around(MemoryReclaim.class, reclaim)
                    : ability;
            abilities.put(type, passed);
            return passed;
        }

        void freed(long address) {
            if (live.containsKey(address)) {
                freed.add(address);
            }
        }

        /// Returns whether a block was freed by the program, but not here.
        boolean isKept(long address) {
            return freed.remove(address) && live.containsKey(address);
        }

        @SuppressWarnings("ReferenceEquality") // the very object of the upstream
        void refuseToPassOn(Class<?> ability, Allocator allocator, long address) {
            Object shown = allocator.extension(ability).orElse(null);
            if (shown != null && shown == abilities.get(ability)) {
                throw new AssertionError(
                        "%s handed out 0x%x again, which it kept after its free, but passes on %s of %s, which takes the"
                                        .formatted(user, address, ability.getSimpleName(), origin)
                                + " new block for the freed one: override extension() and return only abilities of its"
                                + " own");
            }
        }

        /// Forgets a block first, since another thread may get its address at once.
        private @Nullable Object giveBack(Object made, Method method, Object[] arguments) throws Throwable {
            Segment given = arguments[0] instanceof Segment segment
                    ? segment
                    : new Segment((long) arguments[0], (long) arguments[1], (int) arguments[2]);
            freed.remove(given.address());
            Segment obtained = live.remove(given.address());
            if (obtained == null) {
                findings.add(text(method, given) + ", which it does not hold: it never got this memory, or gave it back"
                        + " before; a cache must remove a block when it hands it out");
                return method.getReturnType() == boolean.class ? true : null;
            }
            boolean isRight = obtained.equals(given);
            if (!isRight) {
                findings.add(text(method, given) + "; it was obtained with " + bytes(obtained));
            }
            boolean taken = false;
            try {
                Object result = invoke(made, method, isRight ? arguments : corrected(arguments, obtained));
                taken = !Boolean.FALSE.equals(result);
                return result;
            } finally {
                if (!taken) {
                    live.put(obtained.address(), obtained);
                }
            }
        }

        private String text(Method method, Segment given) {
            String verb = method.getName().equals("free") ? "freed" : "released";
            return "%s %s 0x%x of %s with %s".formatted(user, verb, given.address(), origin, bytes(given));
        }

        private static String bytes(Segment segment) {
            return segment.byteSize() + " bytes on device " + segment.device();
        }

        private static Object[] corrected(Object[] arguments, Segment obtained) {
            Object[] corrected = arguments.clone();
            if (arguments[0] instanceof Segment) {
                corrected[0] = obtained;
            } else {
                corrected[1] = obtained.byteSize();
                corrected[2] = obtained.device();
            }
            return corrected;
        }
    }

    private static <T> T proxy(Class<T> type, Call call) {
        return type.cast(Proxy.newProxyInstance(
                type.getClassLoader(),
                new Class<?>[] {type},
                (_, method, arguments) -> call.on(method, arguments == null ? NONE : arguments)));
    }

    private static Object answer(Object target, Method method, Object[] arguments) throws Throwable {
        return Objects.requireNonNull(invoke(target, method, arguments), method::getName);
    }

    private static @Nullable Object invoke(Object target, Method method, Object[] arguments) throws Throwable {
        try {
            return method.invoke(target, arguments);
        } catch (InvocationTargetException thrown) {
            throw thrown.getTargetException();
        }
    }
}
