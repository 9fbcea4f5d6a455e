package io.cistern.examples.spark.engine;

import io.cistern.cuda.LinearMemory.AddressRange;
import io.cistern.simulated.KernelLaunch;
import java.lang.foreign.MemorySegment;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.List;

/// The arguments of one launch on a simulated device, with its arrays copied to the host.
final class KernelArguments {
    private final List<Parameter> parameters;
    private final KernelLaunch launch;
    private final long[][] words;
    private final byte[][] bytes;

    /// One parameter of a kernel. In text, `v` is a number; `r8:2+1` an array that the kernel reads, `w1:2`
    /// one that it writes, `x8:2` one in which it changes some: of 8 or 1 bytes each, as many as argument 2
    /// says, plus 1.
    record Parameter(boolean reads, boolean writes, int width, int sizeAt, int more) {
        static List<Parameter> parse(String text) {
            List<Parameter> all = new ArrayList<>();
            for (String each : text.split(" ", -1)) {
                String[] size = each.substring(each.indexOf(':') + 1).split("\\+", -1);
                char kind = each.charAt(0);
                all.add(
                        kind == 'v'
                                ? new Parameter(false, false, 0, 0, 0)
                                : new Parameter(
                                        kind != 'w',
                                        kind != 'r',
                                        each.charAt(1) - '0',
                                        Integer.parseInt(size[0]),
                                        size.length - 1));
            }
            return all;
        }

        /// Returns the bytes of the array; 0 for a number or a null pointer.
        long byteSize(KernelLaunch launch, int index) {
            return width == 0 || launch.longAt(index) == 0 ? 0 : width * (launch.longAt(sizeAt) + more);
        }
    }

    KernelArguments(List<Parameter> parameters, KernelLaunch launch) {
        this.parameters = parameters;
        this.launch = launch;
        words = new long[parameters.size()][];
        bytes = new byte[parameters.size()][];
        for (int i = 0; i < words.length; i++) {
            int byteSize = (int) parameters.get(i).byteSize(launch, i);
            byte[] content =
                    parameters.get(i).reads() ? launch.memory().read(launch.longAt(i), byteSize) : new byte[byteSize];
            boolean isWords = parameters.get(i).width() == Long.BYTES;
            words[i] = new long[isWords ? byteSize / Long.BYTES : 0];
            ordered(content).asLongBuffer().get(words[i]);
            bytes[i] = content;
        }
    }

    private static ByteBuffer ordered(byte[] content) {
        return ByteBuffer.wrap(content).order(ByteOrder.LITTLE_ENDIAN);
    }

    static List<AddressRange> ranges(List<Parameter> parameters, KernelLaunch launch) {
        List<AddressRange> ranges = new ArrayList<>();
        for (int i = 0; i < parameters.size(); i++) {
            long byteSize = parameters.get(i).byteSize(launch, i);
            if (byteSize > 0) {
                ranges.add(new AddressRange(launch.longAt(i), byteSize));
            }
        }
        return ranges;
    }

    long number(int argument) {
        return launch.longAt(argument);
    }

    boolean has(int argument) {
        return launch.longAt(argument) != 0;
    }

    /// Returns an array.
    MemorySegment array(int argument) {
        return isOfWords(argument) ? MemorySegment.ofArray(words[argument]) : MemorySegment.ofArray(bytes[argument]);
    }

    private boolean isOfWords(int argument) {
        return parameters.get(argument).width() == Long.BYTES;
    }

    /// Returns part of an array of bytes.
    String text(int argument, long from, long to) {
        return new String(bytes[argument], (int) from, (int) (to - from), StandardCharsets.UTF_8);
    }

    /// Returns an item of an array of words.
    long get(int argument, long index) {
        return words[argument][(int) index];
    }

    void set(int argument, long index, long value) {
        words[argument][(int) index] = value;
    }

    /// Returns an item of an array of bytes.
    byte getByte(int argument, long index) {
        return bytes[argument][(int) index];
    }

    void setByte(int argument, long index, int value) {
        bytes[argument][(int) index] = (byte) value;
    }

    /// Writes back what the kernel has written.
    void write() {
        for (int i = 0; i < bytes.length; i++) {
            if (parameters.get(i).writes() && bytes[i].length > 0) {
                if (isOfWords(i)) {
                    ordered(bytes[i]).asLongBuffer().put(words[i]);
                }
                launch.memory().write(launch.longAt(i), bytes[i]);
            }
        }
    }
}
