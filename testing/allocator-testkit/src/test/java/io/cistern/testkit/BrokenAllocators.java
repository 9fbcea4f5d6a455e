package io.cistern.testkit;

import io.cistern.cuda.CudaDriver;
import io.cistern.cuda.CudaException;
import io.cistern.cuda.Streams;
import io.cistern.errors.DeviceOutOfMemoryException;
import io.cistern.spi.AllocatorAdaptor;
import io.cistern.spi.DeviceAllocator;
import io.cistern.spi.RangeSource;
import io.cistern.spi.Segment;
import io.cistern.spi.StreamOrder;
import io.cistern.spi.StreamUses;
import java.util.ArrayDeque;
import java.util.Deque;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.Optional;
import java.util.OptionalLong;
import java.util.Queue;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.ConcurrentLinkedQueue;
import java.util.concurrent.atomic.AtomicLong;
import org.jspecify.annotations.Nullable;

/// Allocators with one mistake each, over `cuMemAlloc`: the conformance suite must find every one.
final class BrokenAllocators {
    private BrokenAllocators() {}

    /// Right in all that the others get wrong.
    static class Sound implements DeviceAllocator {
        private static final int TRIES = 3;

        final CudaDriver driver;
        final Queue<Segment> refused = new ConcurrentLinkedQueue<>();

        Sound(CudaDriver driver) {
            this.driver = driver;
        }

        @Override
        public long allocate(long byteSize, int device, long stream) {
            try {
                return driver.memory().allocate(device, byteSize);
            } catch (CudaException failure) {
                throw new DeviceOutOfMemoryException(byteSize, device, "", failure);
            }
        }

        @Override
        public void free(long address, long byteSize, int device, long stream) {
            try {
                driver.memory().free(device, address);
            } catch (CudaException failure) { // a free does not throw
                refused.add(new Segment(address, byteSize, device));
            }
        }

        @Override
        public void close() {
            for (int tries = 0; tries < TRIES; tries++) {
                for (int left = refused.size(); left > 0; left--) {
                    Segment again = refused.remove();
                    free(again.address(), again.byteSize(), again.device(), 0);
                }
            }
        }
    }

    /// Forgets what the driver refuses to take back.
    static final class ForgetsRefusals extends Sound {
        ForgetsRefusals(CudaDriver driver) {
            super(driver);
        }

        @Override
        public void close() {}
    }

    /// Tries once more in its close, and not again.
    static final class ClosesOnce extends KeepsByStream {
        ClosesOnce(CudaDriver driver) {
            super(driver);
        }

        @Override
        public synchronized void close() {
            giveBack(0);
            giveBack(1);
        }
    }

    /// Its trim counts what the driver refuses as given back.
    static final class OverstatesTrims extends KeepsByStream {
        OverstatesTrims(CudaDriver driver) {
            super(driver);
        }

        @Override
        public synchronized long trim(int device, long keepBytes) {
            long before = bytes(device);
            giveBack(device);
            return before;
        }
    }

    /// Lets an error out when a wait is announced.
    static final class ThrowsInStreamWaits extends Sound {
        ThrowsInStreamWaits(CudaDriver driver) {
            super(driver);
        }

        @Override
        public void streamWaits(int device, long stream, long awaited) {
            throw new IllegalStateException("it waits");
        }
    }

    /// Works for a while, then throws what no allocator should.
    static final class BreaksDown extends Sound {
        static final String MESSAGE = "broken down";
        private static final int ALLOCATIONS = 100;

        private final AtomicLong allocations = new AtomicLong();

        BreaksDown(CudaDriver driver) {
            super(driver);
        }

        @Override
        public long allocate(long byteSize, int device, long stream) {
            if (allocations.incrementAndGet() > ALLOCATIONS) {
                throw new IllegalStateException(MESSAGE);
            }
            return super.allocate(byteSize, device, stream);
        }
    }

    /// Hands a freed block to any stream at once.
    static class IgnoresStreamOrder extends Sound {
        record Shape(long byteSize, int device, long key) {}

        final Map<Shape, Deque<Long>> idle = new HashMap<>();

        IgnoresStreamOrder(CudaDriver driver) {
            super(driver);
        }

        @Override
        public synchronized long allocate(long byteSize, int device, long stream) {
            Deque<Long> addresses = idle.getOrDefault(new Shape(byteSize, device, key(stream)), new ArrayDeque<>());
            return addresses.isEmpty() ? super.allocate(byteSize, device, stream) : addresses.pop();
        }

        @Override
        public synchronized void free(long address, long byteSize, int device, long stream) {
            idle.computeIfAbsent(new Shape(byteSize, device, key(stream)), _ -> new ArrayDeque<>())
                    .push(address);
        }

        @Override
        public synchronized void close() {
            idle.forEach((shape, addresses) ->
                    addresses.forEach(address -> super.free(address, shape.byteSize(), shape.device(), 0)));
            super.close();
        }

        /// Blocks of one key are handed out as if they were of one stream.
        long key(long stream) {
            return 0;
        }
    }

    /// Does not know that the handle 2 names another stream on each thread.
    static final class KeepsByHandle extends IgnoresStreamOrder {
        KeepsByHandle(CudaDriver driver) {
            super(driver);
        }

        @Override
        long key(long stream) {
            return stream;
        }
    }

    /// Its trim puts the blocks that it keeps where every stream finds them.
    static final class SharesWhatATrimKeeps extends KeepsByStream {
        SharesWhatATrimKeeps(CudaDriver driver) {
            super(driver);
        }

        @Override
        public synchronized long trim(int device, long keepBytes) {
            return keepBytes == 0 ? giveBack(device) : share(device);
        }
    }

    /// Its trim puts the blocks that the driver refuses to take back where every stream finds them.
    static final class SharesWhatTheDriverRefuses extends KeepsByStream {
        SharesWhatTheDriverRefuses(CudaDriver driver) {
            super(driver);
        }

        @Override
        public synchronized long trim(int device, long keepBytes) {
            return giveBack(device) + share(device);
        }
    }

    /// Keeps blocks by stream, rightly.
    static class KeepsByStream extends IgnoresStreamOrder {
        private static final long SHARED = Long.MIN_VALUE;

        KeepsByStream(CudaDriver driver) {
            super(driver);
        }

        @Override
        public synchronized long allocate(long byteSize, int device, long stream) {
            Deque<Long> shared = idle.getOrDefault(new Shape(byteSize, device, SHARED), new ArrayDeque<>());
            return shared.isEmpty() ? super.allocate(byteSize, device, stream) : shared.pop();
        }

        @Override
        long key(long stream) {
            return stream == Streams.PER_THREAD_DEFAULT
                    ? -Thread.currentThread().threadId()
                    : stream;
        }

        @Override
        public synchronized long trim(int device, long keepBytes) {
            return giveBack(device);
        }

        /// Returns blocks to the driver, and keeps those that it refuses.
        final long giveBack(int device) {
            long before = bytes(device);
            idle.forEach((shape, addresses) -> {
                if (shape.device() == device) {
                    addresses.removeIf(address -> isTaken(device, address));
                }
            });
            return before - bytes(device);
        }

        private boolean isTaken(int device, long address) {
            try {
                driver.memory().free(device, address);
                return true;
            } catch (CudaException refused) {
                return false;
            }
        }

        final long bytes(int device) {
            return idle.entrySet().stream()
                    .filter(entry -> entry.getKey().device() == device)
                    .mapToLong(entry ->
                            entry.getKey().byteSize() * entry.getValue().size())
                    .sum();
        }

        final long share(int device) {
            for (Shape shape : List.copyOf(idle.keySet())) {
                if (shape.device() == device) {
                    Deque<Long> kept = Objects.requireNonNull(idle.remove(shape));
                    idle.computeIfAbsent(new Shape(shape.byteSize(), device, SHARED), _ -> new ArrayDeque<>())
                            .addAll(kept);
                }
            }
            return 0;
        }
    }

    /// Gives a little less than it was asked for.
    static final class Short extends Sound {
        Short(CudaDriver driver) {
            super(driver);
        }

        @Override
        public long allocate(long byteSize, int device, long stream) {
            return super.allocate(byteSize - byteSize / 4, device, stream);
        }
    }

    /// Keeps a little of each block until its close.
    static final class KeepsALittle extends Sound {
        private static final long KEPT_BYTES = 256;

        private final Queue<Segment> kept = new ConcurrentLinkedQueue<>();

        KeepsALittle(CudaDriver driver) {
            super(driver);
        }

        @Override
        public void free(long address, long byteSize, int device, long stream) {
            super.free(address, byteSize, device, stream);
            kept.add(new Segment(super.allocate(KEPT_BYTES, device, stream), KEPT_BYTES, device));
        }

        @Override
        public void close() {
            kept.forEach(each -> super.free(each.address(), each.byteSize(), each.device(), 0));
            super.close();
        }
    }

    /// Records an event in each free, and destroys it in its close, if at all.
    static final class KeepsEvents extends Sound {
        private final boolean destroys;
        private final Queue<Long> events = new ConcurrentLinkedQueue<>();

        KeepsEvents(CudaDriver driver, boolean destroys) {
            super(driver);
            this.destroys = destroys;
        }

        @Override
        public void free(long address, long byteSize, int device, long stream) {
            events.add(driver.events().create(0));
            super.free(address, byteSize, device, stream);
        }

        @Override
        public void close() {
            if (destroys) {
                events.forEach(event -> driver.events().destroy(0, event));
            }
            super.close();
        }
    }

    /// Never gives anything back.
    static final class Leaks extends Sound {
        Leaks(CudaDriver driver) {
            super(driver);
        }

        @Override
        public void free(long address, long byteSize, int device, long stream) {}
    }

    /// Takes everything from device 0.
    static final class KnowsOneDevice extends Sound {
        KnowsOneDevice(CudaDriver driver) {
            super(driver);
        }

        @Override
        public long allocate(long byteSize, int device, long stream) {
            return super.allocate(byteSize, 0, stream);
        }

        @Override
        public void free(long address, long byteSize, int device, long stream) {
            super.free(address, byteSize, 0, stream);
        }
    }

    /// Lets the driver's own error through.
    static final class HidesOutOfMemory extends Sound {
        HidesOutOfMemory(CudaDriver driver) {
            super(driver);
        }

        @Override
        public long allocate(long byteSize, int device, long stream) {
            return driver.memory().allocate(device, byteSize);
        }
    }

    /// Reports a part of what it holds.
    static final class Understates extends Sound {
        private final AtomicLong held = new AtomicLong();

        Understates(CudaDriver driver) {
            super(driver);
        }

        @Override
        public long allocate(long byteSize, int device, long stream) {
            long address = super.allocate(byteSize, device, stream);
            held.addAndGet(byteSize);
            return address;
        }

        @Override
        public void free(long address, long byteSize, int device, long stream) {
            held.addAndGet(-byteSize);
            super.free(address, byteSize, device, stream);
        }

        @Override
        public OptionalLong reservedBytes(int device) {
            return OptionalLong.of(held.get() / 2);
        }
    }

    /// Addresses in the middle of nowhere in particular.
    static final class Misaligned extends Sound {
        Misaligned(CudaDriver driver) {
            super(driver);
        }

        @Override
        public long allocate(long byteSize, int device, long stream) {
            return super.allocate(byteSize + 256, device, stream) + 64;
        }

        @Override
        public void free(long address, long byteSize, int device, long stream) {
            super.free(address - 64, byteSize, device, stream);
        }
    }

    /// Hands out blocks of which the second half belongs to the next one.
    static final class Overlaps extends Sound {
        private final Map<Integer, Long> next = new HashMap<>();

        Overlaps(CudaDriver driver) {
            super(driver);
        }

        @Override
        public synchronized long allocate(long byteSize, int device, long stream) {
            long address = next.computeIfAbsent(device, _ -> super.allocate(512L << 20, device, stream));
            next.put(device, address + Math.ceilDiv(byteSize, 512) * 256);
            return address;
        }

        @Override
        public void free(long address, long byteSize, int device, long stream) {}
    }

    /// Right in all that the other adaptors get wrong.
    static class Around extends AllocatorAdaptor {
        Around(DeviceAllocator upstream) {
            super(upstream);
        }
    }

    /// Frees half of each block.
    static final class FreesHalf extends Around {
        FreesHalf(DeviceAllocator upstream) {
            super(upstream);
        }

        @Override
        public void free(long address, long byteSize, int device, long stream) {
            super.free(address, byteSize / 2, device, stream);
        }
    }

    /// Frees each block twice.
    static final class FreesTwice extends Around {
        FreesTwice(DeviceAllocator upstream) {
            super(upstream);
        }

        @Override
        public void free(long address, long byteSize, int device, long stream) {
            super.free(address, byteSize, device, stream);
            super.free(address, byteSize, device, stream);
        }
    }

    /// Frees on device 0.
    static final class FreesOnDevice0 extends Around {
        FreesOnDevice0(DeviceAllocator upstream) {
            super(upstream);
        }

        @Override
        public void free(long address, long byteSize, int device, long stream) {
            super.free(address, byteSize, 0, stream);
        }
    }

    /// Makes a stream wait in each free on another one than that of the allocation, and lets the driver's error
    /// through.
    static final class AwaitsInFree extends Around {
        private final StreamOrder order;
        private final Map<Long, Long> streams = new ConcurrentHashMap<>();

        AwaitsInFree(DeviceAllocator upstream, StreamOrder order) {
            super(upstream);
            this.order = order;
        }

        @Override
        public long allocate(long byteSize, int device, long stream) {
            long address = super.allocate(byteSize, device, stream);
            streams.put(address, stream);
            return address;
        }

        @Override
        public void free(long address, long byteSize, int device, long stream) {
            if (!Objects.equals(streams.remove(address), stream)) {
                long fence = order.recordAll(device);
                try {
                    order.await(device, stream, fence);
                } finally {
                    order.release(device, fence);
                }
            }
            super.free(address, byteSize, device, stream);
        }
    }

    /// Sound, and takes uses on other streams: `cuMemFree` waits for all work.
    static final class TakesUses extends Sound implements StreamUses {
        TakesUses(CudaDriver driver) {
            super(driver);
        }

        @Override
        public boolean recordUse(long address, int device, long stream) {
            return true;
        }
    }

    /// Keeps freed blocks of its upstream by size and stream, rightly.
    static class Keeps extends Around {
        record Shape(long byteSize, int device, long stream) {}

        final Map<Shape, Deque<Long>> idle = new HashMap<>();

        /// The ends of streams so far: in all, of each handle, and before each live block was allocated.
        private long ends;

        private final Map<Long, Long> lastEnds = new HashMap<>();
        private final Map<Long, Long> endsBefore = new HashMap<>();

        Keeps(DeviceAllocator upstream) {
            super(upstream);
        }

        @Override
        public synchronized long allocate(long byteSize, int device, long stream) {
            Long kept = taken(idle.getOrDefault(shape(byteSize, device, stream), new ArrayDeque<>()));
            long address = kept != null ? kept : super.allocate(byteSize, device, stream);
            endsBefore.put(address, ends);
            return address;
        }

        @Nullable
        Long taken(Deque<Long> addresses) {
            return addresses.poll();
        }

        private static Shape shape(long byteSize, int device, long stream) {
            boolean ofThread = stream == Streams.PER_THREAD_DEFAULT;
            return new Shape(
                    byteSize, device, ofThread ? -Thread.currentThread().threadId() : stream);
        }

        @Override
        public synchronized void free(long address, long byteSize, int device, long stream) {
            if (mayHaveEnded(stream, endsBefore.getOrDefault(address, 0L))) {
                super.free(address, byteSize, device, stream);
                return;
            }
            idle.computeIfAbsent(shape(byteSize, device, stream), _ -> new ArrayDeque<>())
                    .push(address);
        }

        /// Whether a free may mean a stream that has ended.
        boolean mayHaveEnded(long stream, long before) {
            return lastEnds.getOrDefault(stream, 0L) > before;
        }

        @Override
        public synchronized long trim(int device, long keepBytes) {
            giveBack();
            return super.trim(device, keepBytes);
        }

        private void giveBack() {
            idle.forEach((shape, addresses) -> addresses.forEach(
                    address -> super.free(address, shape.byteSize(), shape.device(), Math.max(0, shape.stream()))));
            idle.clear();
        }

        @Override
        public synchronized void streamClosing(int device, long stream) {
            lastEnds.put(stream, ++ends);
            giveBack();
            super.streamClosing(device, stream);
        }

        @Override
        public synchronized void close() {
            giveBack();
        }

        @Override
        public <T> Optional<T> extension(Class<T> type) {
            return type.isInstance(this) ? Optional.of(type.cast(this)) : Optional.empty();
        }
    }

    /// Takes a stream that has ended for one that exists.
    static final class KeepsWhatEndedStreamsFree extends Keeps {
        KeepsWhatEndedStreamsFree(DeviceAllocator upstream) {
            super(upstream);
        }

        @Override
        boolean mayHaveEnded(long stream, long before) {
            return false;
        }
    }

    /// Takes a handle for that of an existing stream once a stream has allocated by it.
    static final class ForgetsEndsWhenHandlesComeAgain extends Keeps {
        private final Set<Long> ended = ConcurrentHashMap.newKeySet();

        ForgetsEndsWhenHandlesComeAgain(DeviceAllocator upstream) {
            super(upstream);
        }

        @Override
        public synchronized long allocate(long byteSize, int device, long stream) {
            ended.remove(stream);
            return super.allocate(byteSize, device, stream);
        }

        @Override
        boolean mayHaveEnded(long stream, long before) {
            return ended.contains(stream);
        }

        @Override
        public synchronized void streamClosing(int device, long stream) {
            ended.add(stream);
            super.streamClosing(device, stream);
        }
    }

    /// Keeps blocks, and passes on what its upstream can.
    static final class KeepsAndPassesOn extends Keeps {
        KeepsAndPassesOn(DeviceAllocator upstream) {
            super(upstream);
        }

        @Override
        public <T> Optional<T> extension(Class<T> type) {
            return upstream().extension(type);
        }
    }

    /// Does not take a kept block out when it hands it out.
    static final class HandsOutTwice extends Keeps {
        HandsOutTwice(DeviceAllocator upstream) {
            super(upstream);
        }

        @Override
        @Nullable
        Long taken(Deque<Long> addresses) {
            return addresses.peek();
        }
    }

    /// Releases half of each range.
    record ReleasesHalf(RangeSource source) implements DeviceAllocator {
        @Override
        public long allocate(long byteSize, int device, long stream) {
            return source.acquire(byteSize, 256, device).address();
        }

        @Override
        public void free(long address, long byteSize, int device, long stream) {
            source.release(new Segment(address, byteSize / 2, device));
        }
    }
}
