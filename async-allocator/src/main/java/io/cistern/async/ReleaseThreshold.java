package io.cistern.async;

import io.cistern.cuda.CudaDriver;
import io.cistern.cuda.settings.ByteSizes;
import io.cistern.spi.options.AllocatorOptions;
import java.util.List;
import java.util.Locale;
import java.util.Optional;
import java.util.regex.Pattern;

/// Says how many bytes a pool keeps when the host synchronises (`CU_MEMPOOL_ATTR_RELEASE_THRESHOLD`): a
/// fixed number, or one that the allocator adapts while the program runs.
///
/// | in a spec | meaning |
/// |---|---|
/// | `release_threshold=zero` | nothing is kept: the driver's own default |
/// | `release_threshold=keep_all` | everything is kept: the default of `async`, as in other frameworks |
/// | `release_threshold=2g` | that many bytes are kept |
/// | `release_threshold=0.3` | that share of the device's memory is kept, as with `30%` |
/// | `release_threshold=adaptive` | memory that the program will probably soon need again is kept |
public sealed interface ReleaseThreshold {
    /// Returns the threshold that keeps nothing.
    static ReleaseThreshold zero() {
        return new Bytes(0);
    }

    /// Returns the threshold that keeps everything.
    static ReleaseThreshold keepAll() {
        return new Bytes(Long.MAX_VALUE);
    }

    /// A number of bytes.
    ///
    /// @param byteSize at least 0; [Long#MAX_VALUE] for everything
    record Bytes(long byteSize) implements ReleaseThreshold {
        @Override
        public long initialBytes(CudaDriver driver, int device) {
            return byteSize;
        }
    }

    /// A share of the device's memory.
    ///
    /// @param share from 0 to 1
    record Fraction(double share) implements ReleaseThreshold {
        @Override
        public long initialBytes(CudaDriver driver, int device) {
            return (long) (share * driver.memory().info(device).totalBytes());
        }
    }

    /// A threshold that the allocator adapts, for each pool, to the way in which the program uses memory.
    /// Until the allocator has seen enough of the program, the pool keeps everything.
    record Adaptive() implements ReleaseThreshold {
        @Override
        public long initialBytes(CudaDriver driver, int device) {
            return Long.MAX_VALUE;
        }
    }

    /// Everything is kept, unless the pool's owner has set a threshold already. This form is for the
    /// driver's default pool, whose threshold is 0 unless some code sets another: with 0, the pool would
    /// give all idle memory back at each synchronisation.
    record Raised() implements ReleaseThreshold {
        @Override
        public long initialBytes(CudaDriver driver, int device) {
            return Long.MAX_VALUE;
        }
    }

    /// Returns the threshold of a new pool on a device, in bytes.
    long initialBytes(CudaDriver driver, int device);

    /// Returns the value as a spec writes it.
    default String text() {
        return switch (this) {
            case Bytes(long byteSize) when byteSize == Long.MAX_VALUE -> "keep_all";
            case Bytes(long byteSize) -> Long.toString(byteSize);
            case Fraction(double share) -> String.format(Locale.ROOT, "%f", share);
            case Raised() -> "keep_all";
            case Adaptive() -> "adaptive";
        };
    }

    /// Reads an option of a spec; returns empty if the spec does not have it.
    ///
    /// @throws io.cistern.errors.ConfigurationException if the value has none of the forms in the table of
    ///     [ReleaseThreshold]
    static Optional<ReleaseThreshold> read(AllocatorOptions options, String key) {
        return options.text(key).map(text -> Syntax.read(text, options, key));
    }

    /// Distinguishes the forms of a value.
    final class Syntax {
        private static final Pattern NUMBER = Pattern.compile("[-+.\\d]");
        private static final List<String> WORDS = List.of("adaptive", "keep_all", "zero");

        private Syntax() {}

        private static ReleaseThreshold read(String text, AllocatorOptions options, String key) {
            if (ByteSizes.isShare(text)) {
                return new Fraction(options.fraction(key).orElseThrow());
            }
            if (NUMBER.matcher(text).lookingAt()) {
                return new Bytes(options.bytes(key).orElseThrow());
            }
            return switch (options.choice(key, WORDS).orElseThrow()) {
                case "zero" -> zero();
                case "keep_all" -> keepAll();
                default -> new Adaptive();
            };
        }
    }
}
