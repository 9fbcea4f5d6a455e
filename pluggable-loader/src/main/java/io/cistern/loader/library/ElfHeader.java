package io.cistern.loader.library;

import java.io.IOException;
import java.io.InputStream;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Map;
import java.util.Optional;

/// Reads the first bytes of an ELF file, to tell whether it is one and for which machine. For a library of
/// another machine, the dynamic linker only says that there is no such file.
final class ElfHeader {
    private static final int BYTES = 20;
    private static final int MAGIC = 0x464C457F; // 0x7F E L F, read as a little-endian number
    private static final int CLASS_AT = 4;
    private static final int CLASS_64 = 2;
    private static final int ORDER_AT = 5;
    private static final int LITTLE_ENDIAN = 1;
    private static final int TYPE_AT = 16;
    private static final int SHARED_OBJECT = 3;
    private static final int MACHINE_AT = 18;

    /// The values of `e_machine`, with Java's names of the machines.
    private static final Map<Integer, String> MACHINES =
            Map.of(3, "x86", 40, "arm", 62, "amd64", 183, "aarch64", 243, "riscv64", 21, "ppc64le");

    private ElfHeader() {}

    /// Returns the reason why a file can't be loaded here, worded to follow its path.
    static Optional<String> problem(Path file) throws IOException {
        String architecture = System.getProperty("os.arch", "");
        ByteBuffer header = header(file);
        if (header.limit() < BYTES || header.getInt(0) != MAGIC) {
            return Optional.of("is not a shared library: it does not start like an ELF file");
        }
        if (header.get(CLASS_AT) != CLASS_64) {
            return Optional.of("is a 32-bit library");
        }
        header.order(header.get(ORDER_AT) == LITTLE_ENDIAN ? ByteOrder.LITTLE_ENDIAN : ByteOrder.BIG_ENDIAN);
        int machine = Short.toUnsignedInt(header.getShort(MACHINE_AT));
        String name = MACHINES.getOrDefault(machine, "machine number " + machine);
        if (!name.equals(architecture)) {
            return Optional.of("is for " + name + ", and this Java runs on " + architecture);
        }
        return header.getShort(TYPE_AT) == SHARED_OBJECT
                ? Optional.empty()
                : Optional.of("is an ELF file, but not a shared library");
    }

    private static ByteBuffer header(Path file) throws IOException {
        try (InputStream in = Files.newInputStream(file)) {
            return ByteBuffer.wrap(in.readNBytes(BYTES)).order(ByteOrder.LITTLE_ENDIAN);
        }
    }
}
