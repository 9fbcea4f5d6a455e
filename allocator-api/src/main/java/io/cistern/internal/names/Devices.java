package io.cistern.internal.names;

import java.util.Objects;

/// Tells a device that there is not from a defect: with its number, and with those that there are.
public final class Devices {
    private Devices() {}

    /// Checks an ordinal, on the way of each allocation. With comparisons of its own, compilers made slower
    /// code of some pairs, by chance.
    ///
    /// @return the ordinal
    /// @throws IndexOutOfBoundsException if there is no such device
    public static int check(int device, int count) {
        try {
            return Objects.checkIndex(device, count);
        } catch (IndexOutOfBoundsException e) {
            throw none(device, count);
        }
    }

    /// The error for one that there is not; ways that are hot catch the array's own and throw this.
    public static IndexOutOfBoundsException none(int device, int count) {
        return new IndexOutOfBoundsException("there is no device " + device + ": the driver has " + all(count));
    }

    /// So many devices, for a message.
    static String all(int count) {
        return switch (count) {
            case 0 -> "none";
            case 1 -> "device 0 alone";
            default -> "devices 0 to " + (count - 1);
        };
    }
}
