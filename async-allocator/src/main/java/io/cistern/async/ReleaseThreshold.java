package io.cistern.async;

import io.cistern.cuda.CudaDriver;
import io.cistern.cuda.PoolAttribute;
import io.cistern.spi.AllocatorOptions;
import java.util.List;
import java.util.regex.Pattern;
import org.jspecify.annotations.Nullable;

/// How many bytes a pool keeps over a synchronisation: `CU_MEMPOOL_ATTR_RELEASE_THRESHOLD`, fixed, or found.
///
/// | in a spec | what |
/// |---|---|
/// | `release_threshold=zero` | nothing is kept: the driver's own default |
/// | `release_threshold=keep_all` | everything is kept: the default here, as in other frameworks |
/// | `release_threshold=2GiB` | so many bytes |
/// | `release_threshold=0.3` | that share of the device's memory; needs the point |
/// | `release_threshold=adaptive` | what the program will want again: [AdaptiveThreshold] |
sealed interface ReleaseThreshold {
    /// The option's name.
    String OPTION = "release_threshold";

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

    /// Sets it on a new pool.
    ///
    /// @return what is to be told of the pool's calls; null if the threshold stays as it is
    default @Nullable AdaptiveRelease apply(CudaDriver driver, int device, long pool) {
        long bytes = initialBytes(driver, device);
        driver.pools().setAttribute(device, pool, PoolAttribute.RELEASE_THRESHOLD, bytes);
        return this instanceof Adaptive ? new AdaptiveRelease(driver, device, pool, bytes) : null;
    }

    /// Reads the option of a spec; [Bytes#KEEP_ALL] if it is not there.
    ///
    /// @throws io.cistern.ConfigurationException for a value that is none of those above
    static ReleaseThreshold read(AllocatorOptions options) {
        return options.text(OPTION).map(text -> read(text, options)).orElse(Bytes.KEEP_ALL);
    }

    private static ReleaseThreshold read(String text, AllocatorOptions options) {
        if (Syntax.FRACTION.matcher(text).matches()) {
            return new Fraction(options.fraction(OPTION).orElseThrow());
        }
        if (Syntax.NUMBER.matcher(text).lookingAt()) {
            return new Bytes(options.bytes(OPTION).orElseThrow());
        }
        return switch (options.choice(OPTION, Syntax.WORDS).orElseThrow()) {
            case "zero" -> Bytes.ZERO;
            case "keep_all" -> Bytes.KEEP_ALL;
            default -> new Adaptive();
        };
    }

    /// What tells the forms apart.
    final class Syntax {
        private static final Pattern FRACTION = Pattern.compile("[-+]?\\d*\\.\\d+");
        private static final Pattern NUMBER = Pattern.compile("[-+.\\d]");
        private static final List<String> WORDS = List.of("adaptive", "keep_all", "zero");

        private Syntax() {}
    }
}
