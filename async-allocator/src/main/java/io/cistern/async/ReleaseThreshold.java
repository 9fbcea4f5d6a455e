package io.cistern.async;

import io.cistern.cuda.CudaDriver;
import io.cistern.spi.options.AllocatorOptions;
import java.util.List;
import java.util.Locale;
import java.util.Optional;
import java.util.regex.Pattern;

/// How many bytes a pool keeps over a synchronisation: `CU_MEMPOOL_ATTR_RELEASE_THRESHOLD`, fixed, or found.
///
/// | in a spec | what |
/// |---|---|
/// | `release_threshold=zero` | nothing is kept: the driver's own default |
/// | `release_threshold=keep_all` | everything is kept: the default here, as in other frameworks |
/// | `release_threshold=2GiB` | so many bytes |
/// | `release_threshold=0.3` | that share of the device's memory; needs the point |
/// | `release_threshold=adaptive` | what the program will want again: [AdaptiveThreshold] |
public sealed interface ReleaseThreshold {
    /// Keeps nothing.
    static ReleaseThreshold zero() {
        return new Bytes(0);
    }

    /// Keeps everything.
    static ReleaseThreshold keepAll() {
        return new Bytes(Long.MAX_VALUE);
    }

    /// A number of bytes.
    ///
    /// @param byteSize at least 0; [Long#MAX_VALUE] for everything
    record Bytes(long byteSize) implements ReleaseThreshold {
        /// Keeps nothing.
        static final Bytes ZERO = new Bytes(0);

        /// Keeps everything.
        static final Bytes KEEP_ALL = new Bytes(Long.MAX_VALUE);

        @Override
        public long initialBytes(CudaDriver driver, int device) {
            return byteSize;
        }
    }

    /// A share of the device.
    ///
    /// @param share from 0 to 1
    record Fraction(double share) implements ReleaseThreshold {
        @Override
        public long initialBytes(CudaDriver driver, int device) {
            return (long) (share * driver.memory().info(device).totalBytes());
        }
    }

    /// Found by [AdaptiveThreshold], pool by pool. Until it knows something, everything is kept.
    record Adaptive() implements ReleaseThreshold {
        @Override
        public long initialBytes(CudaDriver driver, int device) {
            return Long.MAX_VALUE;
        }
    }

    /// What a new pool on a device is given.
    long initialBytes(CudaDriver driver, int device);

    /// As a spec has it.
    default String text() {
        return switch (this) {
            case Bytes(long byteSize) when byteSize == Long.MAX_VALUE -> "keep_all";
            case Bytes(long byteSize) -> Long.toString(byteSize);
            case Fraction(double share) -> String.format(Locale.ROOT, "%f", share);
            case Adaptive() -> "adaptive";
        };
    }

    /// Reads an option of a spec, if it is there.
    ///
    /// @throws io.cistern.errors.ConfigurationException for a value that is none of those above
    static Optional<ReleaseThreshold> read(AllocatorOptions options, String key) {
        return options.text(key).map(text -> Syntax.read(text, options, key));
    }

    /// What tells the forms apart.
    final class Syntax {
        private static final Pattern FRACTION = Pattern.compile("[-+]?\\d*\\.\\d+");
        private static final Pattern NUMBER = Pattern.compile("[-+.\\d]");
        private static final List<String> WORDS = List.of("adaptive", "keep_all", "zero");

        private Syntax() {}

        private static ReleaseThreshold read(String text, AllocatorOptions options, String key) {
            if (FRACTION.matcher(text).matches()) {
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
