package io.cistern.testkit;

import io.cistern.cuda.Streams;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.Optional;
import java.util.stream.Collectors;

/// Remembers which stream got and freed which block, to say why a block's contents differ. Any thread may call any
/// method at any time.
final class BlockHistory {
    /// The history of a block. `allocated` and `freed` are positions in one count of all blocks'
    /// allocations and frees.
    private static final class Life {
        final Block block;
        final long allocated;
        final String allocatedBy = Thread.currentThread().getName();
        long freed = Long.MAX_VALUE;
        String freedBy = "";

        /// Whether the stream that the free names had already ended when the block was freed.
        boolean hadEnded;

        /// The streams that must pass before others may get the block's memory; the stream of the free is the
        /// last one.
        final List<Long> users = new ArrayList<>();

        Life(Block block, long allocated) {
            this.block = block;
            this.allocated = allocated;
        }
    }

    private final List<Life> lives = new ArrayList<>();
    private final Map<Block, Life> byBlock = new HashMap<>();
    private long events;

    synchronized void allocated(Block block) {
        Life life = new Life(block, events++);
        lives.add(life);
        byBlock.put(block, life);
    }

    synchronized void used(Block block, long stream) {
        of(block).users.add(stream);
    }

    /// @param hadEnded whether the stream has ended, so that its handle may be another one's
    synchronized void freed(Block block, long stream, boolean hadEnded) {
        Life life = of(block);
        life.users.add(stream);
        life.freedBy = Thread.currentThread().getName();
        life.hadEnded = hadEnded;
        life.freed = events++;
    }

    private Life of(Block block) {
        return Objects.requireNonNull(byBlock.get(block));
    }

    /// Returns a mismatch with its likely cause.
    synchronized String explain(Patterns.Mismatch mismatch) {
        return lives.stream()
                .filter(life -> life.block.address() == mismatch.address() && life.block.seed() == mismatch.seed())
                .findFirst()
                .map(life -> mismatch.text() + "; likely cause: " + cause(life))
                .orElse(mismatch.text());
    }

    private String cause(Life hurt) {
        return successor(hurt)
                .map(next -> "%s got it, in a block of %d bytes at 0x%x, before %s; %s"
                        .formatted(
                                receiver(next),
                                next.block.byteSize(),
                                next.block.address(),
                                awaited(hurt),
                                remedy(hurt, next.block.stream())))
                .or(() -> predecessor(hurt)
                        .map(last -> "%s got it before %s; %s"
                                .formatted(receiver(hurt), awaited(last), remedy(last, hurt.block.stream()))))
                .orElse("no other stream got it after its free: either its memory is mapped at another address"
                        + " too, or it went back to the driver before the work on it had finished");
    }

    /// Returns the next block in the memory whose stream had to wait.
    private Optional<Life> successor(Life hurt) {
        return lives.stream()
                .filter(life -> life.allocated > hurt.freed && overlaps(life.block, hurt.block))
                .filter(life -> hadToWait(life.block.stream(), hurt))
                .findFirst();
    }

    /// Returns the block that was in the memory before and whose stream, which has ended, still wrote to it.
    private Optional<Life> predecessor(Life hurt) {
        return lives.stream()
                .filter(life -> life.hadEnded && life.freed < hurt.allocated && overlaps(life.block, hurt.block))
                .findFirst();
    }

    private static boolean hadToWait(long stream, Life hurt) {
        return hurt.hadEnded
                || stream != hurt.users.getLast()
                || stream == Streams.PER_THREAD_DEFAULT
                || hurt.users.size() > 1;
    }

    private static boolean overlaps(Block one, Block other) {
        return one.device() == other.device() && one.address() < other.end() && other.address() < one.end();
    }

    private static String receiver(Life next) {
        return name(next.block.stream(), next.allocatedBy);
    }

    /// Returns a stream in words.
    ///
    /// @param thread the thread that named it
    static String name(long stream, String thread) {
        return "stream 0x%x".formatted(stream) + (stream == Streams.PER_THREAD_DEFAULT ? " of thread " + thread : "");
    }

    private static String remedy(Life freed, long receiver) {
        return freed.hadEnded
                ? "streamClosing had announced that end, so the free could not mean a stream that has the handle now: keep"
                        + " such a block until all work so far on the device is done (StreamOrder.recordAll)"
                : remedy(freed.users.getLast(), receiver)
                        + (freed.users.size() > 1 ? ", and likewise for each recorded use (StreamUses)" : "");
    }

    /// Says what an allocator should do with a block before it gives its memory to a stream.
    ///
    /// @param freeing the stream of the free, which has not ended
    static String remedy(long freeing, long receiver) {
        return freeing == Streams.PER_THREAD_DEFAULT && receiver == freeing
                ? "0x2 is the per-thread default stream, another stream on each thread: keep what is freed on it by thread"
                : "keep a freed block for the stream of its free, or record a fence there in free() and give the block to"
                        + " another stream only after the fence has passed (StreamOrder)";
    }

    private static String awaited(Life hurt) {
        String freeing = name(hurt.users.getLast(), hurt.freedBy)
                + (hurt.hadEnded ? ", which had ended before the free, had done its work" : " had passed its free");
        String uses = hurt.users.stream()
                .limit(hurt.users.size() - 1L)
                .distinct()
                .map(stream -> "stream 0x%x its recorded use".formatted(stream))
                .collect(Collectors.joining(", "));
        return uses.isEmpty() ? freeing : freeing + ", or " + uses;
    }
}
