package io.cistern.caching.options;

import io.cistern.errors.ConfigurationException;
import java.util.Arrays;
import java.util.List;
import java.util.stream.IntStream;

/// Rounds sizes up to one of some steps between two powers of two, so that sizes that drift a little still find
/// the same blocks. With 4 divisions, 84 MiB become 96 MiB, since 64, 80, 96 and 112 MiB are the steps there.
///
/// The number of divisions depends on the power of two below a size: 16 intervals from 1 MiB to 32 GiB, the first
/// also for all below, the last also for all above. As PyTorch's `roundup_power2_divisions`, which keeps exact
/// powers of two and leaves sizes alone for which a step would be less than a granule.
public final class PowerTwoDivisions {
    static final String LEGAL =
            "0, or a power of two up to 1024; or a list like [256:1,512:2,1024:4,>:8], of rising powers of two"
                    + " (MiB, up to 32768) and their divisions, `>` last";

    private static final int INTERVALS = 16;
    private static final int FIRST_SHIFT = 20;
    /// Beyond this a step of the largest interval is less than what people mean by a step.
    private static final int MAX_DIVISIONS = 1 << 10;

    private static final String ABOVE = ">";

    private final List<String> texts;
    private final int[] divisions;

    private PowerTwoDivisions(List<String> texts, int[] divisions) {
        this.texts = texts;
        this.divisions = divisions;
    }

    /// The same number of divisions for all sizes.
    ///
    /// @throws ConfigurationException if it is neither 0 nor a power of two up to 1024
    public static PowerTwoDivisions of(int divisions) {
        return parse(List.of(Integer.toString(divisions)));
    }

    /// Reads a number alone, or entries `MiB:divisions`.
    ///
    /// @throws ConfigurationException if they are anything else
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
            // The same answer as to a number that is not legal.
        }
        throw bad(texts);
    }

    private static ConfigurationException bad(List<String> texts) {
        return CachingOption.ROUNDUP_POWER2_DIVISIONS.illegal(texts);
    }

    /// What it was read from.
    List<String> texts() {
        return texts;
    }

    /// Whether any size is rounded.
    public boolean rounds() {
        return IntStream.of(divisions).anyMatch(count -> count > 1);
    }

    /// The step that a size is rounded up to, a power of two; `least` where that is the larger one.
    public long step(long byteSize, long least) {
        long power = Long.highestOneBit(byteSize);
        int interval = Math.clamp(Long.numberOfTrailingZeros(power) - FIRST_SHIFT, 0, INTERVALS - 1);
        int count = divisions[interval];
        return count <= 1 || byteSize <= least * count ? least : Math.max(power / count, least);
    }

    /// As it was written.
    @Override
    public String toString() {
        return texts.size() == 1 ? texts.getFirst() : texts.toString();
    }
}
