package io.cistern.caching.options;

import io.cistern.errors.ConfigurationException;
import java.util.Arrays;
import java.util.List;
import java.util.stream.IntStream;

/// Rounds sizes up to steps between two powers of two, so that sizes that vary a little still find the same
/// blocks. With 4 divisions, 84 MiB become 96 MiB: the steps there are 64, 80, 96 and 112 MiB.
///
/// The number of divisions depends on the power of two below a size. There are 16 intervals from 1 MiB to 32
/// GiB; the first also covers all smaller sizes, the last all larger ones. Like PyTorch's
/// `roundup_power2_divisions`, this keeps exact powers of two, and does not round sizes for which a step would
/// be less than a granule.
public final class PowerTwoDivisions {
    static final String LEGAL =
            "0, or a power of two up to 1024; or a list like [256:1,512:2,1024:4,>:8], of rising powers of two"
                    + " (MiB, up to 32768) and their divisions, `>` last";

    private static final int INTERVALS = 16;
    private static final int FIRST_SHIFT = 20;
    /// With more divisions, a step is too small to bring similar sizes together.
    private static final int MAX_DIVISIONS = 1 << 10;

    private static final String ABOVE = ">";

    private final List<String> texts;
    private final int[] divisions;

    private PowerTwoDivisions(List<String> texts, int[] divisions) {
        this.texts = texts;
        this.divisions = divisions;
    }

    /// Returns the same number of divisions for all sizes.
    ///
    /// @param divisions 0 or 1 for no rounding, or a power of two up to 1024
    /// @throws ConfigurationException if `divisions` is neither 0 nor a power of two up to 1024
    public static PowerTwoDivisions of(int divisions) {
        return parse(List.of(Integer.toString(divisions)));
    }

    /// Reads a single number, or entries `MiB:divisions`.
    ///
    /// @param texts a number as for [#of], or entries by rising powers of two (MiB), the
    ///     last perhaps `>:divisions`
    /// @throws ConfigurationException if the texts are anything else
    public static PowerTwoDivisions parse(List<String> texts) {
        int[] divisions = new int[INTERVALS];
        if (texts.size() == 1 && texts.getFirst().indexOf(':') < 0) {
            Arrays.fill(divisions, divisions(texts.getFirst(), texts));
        } else {
            parseList(texts, divisions);
        }
        return new PowerTwoDivisions(List.copyOf(texts), divisions);
    }

    private static void parseList(List<String> texts, int[] divisions) {
        int last = -1;
        for (String text : texts) {
            int colon = text.indexOf(':');
            if (colon < 0 || (last == INTERVALS)) {
                throw bad(texts);
            }
            String bound = text.substring(0, colon).strip();
            int count = divisions(text.substring(colon + 1).strip(), texts);
            int interval = bound.equals(ABOVE) ? INTERVALS : interval(bound, texts);
            if (interval <= last) {
                throw bad(texts);
            }
            int from = last < 0 ? 0 : bound.equals(ABOVE) ? last + 1 : interval;
            Arrays.fill(divisions, from, Math.min(interval + 1, INTERVALS), count);
            last = interval;
        }
        if (texts.isEmpty()) {
            throw bad(texts);
        }
    }

    private static int interval(String mebibytes, List<String> texts) {
        int bound = powerOfTwo(mebibytes, 1 << (INTERVALS - 1), texts);
        return Integer.numberOfTrailingZeros(bound);
    }

    private static int divisions(String text, List<String> texts) {
        return text.equals("0") ? 0 : powerOfTwo(text, MAX_DIVISIONS, texts);
    }

    private static int powerOfTwo(String text, int most, List<String> texts) {
        try {
            int number = Integer.parseInt(text);
            if (number >= 1 && number <= most && Integer.bitCount(number) == 1) {
                return number;
            }
        } catch (NumberFormatException e) {
            // Handled like a number that is not legal.
        }
        throw bad(texts);
    }

    private static ConfigurationException bad(List<String> texts) {
        return CachingOption.ROUNDUP_POWER2_DIVISIONS.illegal(texts);
    }

    /// The texts from which this was read.
    List<String> texts() {
        return texts;
    }

    /// Returns whether any size is rounded.
    public boolean rounds() {
        return IntStream.of(divisions).anyMatch(count -> count > 1);
    }

    /// Returns the step to whose multiple a size is rounded up.
    ///
    /// @param byteSize a size in bytes
    /// @param least the smallest step, a power of two
    /// @return a power of two, at least `least`
    public long step(long byteSize, long least) {
        long power = Long.highestOneBit(byteSize);
        int interval = Math.clamp(Long.numberOfTrailingZeros(power) - FIRST_SHIFT, 0, INTERVALS - 1);
        int count = divisions[interval];
        return count <= 1 || byteSize <= least * count ? least : Math.max(power / count, least);
    }

    /// Returns the divisions as they were written.
    @Override
    public String toString() {
        return texts.size() == 1 ? texts.getFirst() : texts.toString();
    }
}
