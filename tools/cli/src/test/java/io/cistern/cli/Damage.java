package io.cistern.cli;

import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.io.OutputStream;
import java.io.UncheckedIOException;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collections;
import java.util.List;
import java.util.SplittableRandom;
import java.util.function.Function;
import java.util.regex.MatchResult;
import java.util.regex.Pattern;
import java.util.stream.IntStream;
import java.util.stream.Stream;
import java.util.zip.GZIPOutputStream;

/// What kills, disks, editors and attackers make of a file. A seed decides all of it.
final class Damage {
    /// A file of at most so many bytes is cut at each of its lengths.
    private static final int SMALL = 400;

    private static final Pattern NUMBER = Pattern.compile("\\d+");
    private static final List<String> NUMBERS = List.of(
            "", "-1", "0", "7x", "2147483648", "9223372036854775807", "18446744073709551616", "1e400", "9".repeat(60));

    private final byte[] whole;
    private final SplittableRandom random;
    private final List<Function<byte[], byte[]>> kinds =
            List.of(this::flipped, this::overwritten, this::blownUp, this::swapped, this::doubled, this::renamed);

    private Damage(byte[] whole, long seed) {
        this.whole = whole;
        random = new SplittableRandom(seed);
    }

    /// Returns damaged copies of a file: cut ones, one packed once more, and some drawn with one to three faults.
    static Stream<byte[]> of(byte[] whole, long seed, int count) {
        Damage damage = new Damage(whole, seed);
        IntStream lengths = whole.length <= SMALL
                ? IntStream.range(0, whole.length)
                : damage.random.ints(count / 3, 0, whole.length);
        return Stream.of(
                        lengths.mapToObj(length -> Arrays.copyOf(whole, length)),
                        Stream.of(gzip(whole)),
                        Stream.generate(damage::drawn).limit(count))
                .flatMap(copies -> copies);
    }

    private byte[] drawn() {
        byte[] copy = whole;
        for (int faults = random.nextInt(1, 4); faults > 0 && copy.length > 0; faults--) {
            copy = kinds.get(random.nextInt(kinds.size())).apply(copy);
        }
        return copy;
    }

    private byte[] flipped(byte[] from) {
        byte[] copy = from.clone();
        copy[random.nextInt(copy.length)] ^= (byte) (1 << random.nextInt(Byte.SIZE));
        return copy;
    }

    /// A number in binary becomes huge or negative.
    private byte[] overwritten(byte[] from) {
        byte[] copy = from.clone();
        int at = random.nextInt(copy.length);
        int end = Math.min(copy.length, at + (1 << random.nextInt(4)));
        Arrays.fill(copy, at, end, (byte) (random.nextBoolean() ? 0xff : 0x7f));
        return copy;
    }

    /// A number in digits becomes huge, negative or none.
    private byte[] blownUp(byte[] from) {
        String text = new String(from, StandardCharsets.ISO_8859_1);
        List<MatchResult> numbers = NUMBER.matcher(text).results().toList();
        if (numbers.isEmpty()) {
            return from;
        }
        MatchResult number = numbers.get(random.nextInt(numbers.size()));
        String other = NUMBERS.get(random.nextInt(NUMBERS.size()));
        return (text.substring(0, number.start()) + other + text.substring(number.end()))
                .getBytes(StandardCharsets.ISO_8859_1);
    }

    /// Two rows, or two halves of what has no rows, change places.
    private byte[] swapped(byte[] from) {
        List<String> rows =
                new ArrayList<>(List.of(new String(from, StandardCharsets.ISO_8859_1).split("(?<=\n)", -1)));
        if (rows.size() < 3) {
            byte[] copy = from.clone();
            Collections.rotate(bytes(copy), random.nextInt(copy.length));
            return copy;
        }
        Collections.swap(rows, random.nextInt(rows.size()), random.nextInt(rows.size()));
        return String.join("", rows).getBytes(StandardCharsets.ISO_8859_1);
    }

    private static List<Byte> bytes(byte[] array) {
        return new java.util.AbstractList<>() {
            @Override
            public Byte get(int index) {
                return array[index];
            }

            @Override
            public Byte set(int index, Byte value) {
                byte before = array[index];
                array[index] = value;
                return before;
            }

            @Override
            public int size() {
                return array.length;
            }
        };
    }

    /// A part stands there twice.
    private byte[] doubled(byte[] from) {
        int at = random.nextInt(from.length);
        int length = random.nextInt(from.length - at) + 1;
        byte[] copy = Arrays.copyOf(from, from.length + length);
        System.arraycopy(from, at, copy, at + length, from.length - at);
        return copy;
    }

    /// The first bytes are those of another kind of file.
    private byte[] renamed(byte[] from) {
        byte[] copy = from.clone();
        byte[] magic = List.of("\u0080\u0004", "\u001f\u008b\u0008", "PK\u0003\u0004", "{", "op,id", "Thread,")
                .get(random.nextInt(6))
                .getBytes(StandardCharsets.ISO_8859_1);
        System.arraycopy(magic, 0, copy, 0, Math.min(magic.length, copy.length));
        return copy;
    }

    static byte[] gzip(byte[] content) {
        ByteArrayOutputStream packed = new ByteArrayOutputStream();
        try (OutputStream out = new GZIPOutputStream(packed)) {
            out.write(content);
        } catch (IOException e) {
            throw new UncheckedIOException(e);
        }
        return packed.toByteArray();
    }
}
