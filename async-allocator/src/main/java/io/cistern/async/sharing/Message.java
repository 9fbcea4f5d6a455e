package io.cistern.async.sharing;

import io.cistern.errors.SharingException;
import io.cistern.errors.SharingException.Reason;
import java.nio.BufferUnderflowException;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.charset.CharacterCodingException;
import java.nio.charset.StandardCharsets;
import java.util.Arrays;

/// A message between importer and exporter. The importer asks, and the exporter answers each question once.
///
/// ```
/// importer                               exporter
/// Hello(transfer)                   →    Pool(device, handle)          the pool's descriptor comes along
/// Map(name, size, importer's event) →    Buffer(id, size, pointer, exporter's event)
/// Release(id)                       →    Released()                    the importer has recorded its event before
///                                        Refused(reason, text)         instead of any answer
/// ```
/// A message has 12 bytes of header and then its fields, little-endian; each string has its length in front:
/// ```
/// 0       4         6      8        12
/// "CIST"  version   kind   length   fields …
/// ```
/// The header and [Refused] are the same in all versions, so that a partner of another version can report the
/// mismatch.
sealed interface Message {
    int VERSION = 1;
    /// The longest message is a [Map] with its name, or a [Refused] with its text.
    int MAX_BYTES = 2048;

    int MAX_NAME_BYTES = 255;
    int MAX_TEXT_BYTES = 1500;
    int MAGIC = 0x5453_4943;
    int HEADER_BYTES = 12;

    /// Opens a conversation.
    ///
    /// @param transfer how the importer wants to get the pool
    record Hello(Transfer transfer) implements Message {}

    /// Describes the pool.
    ///
    /// @param uuid the UUID of the pool's device
    /// @param handleType a bit of `HandleType`
    /// @param number the number of the pool's descriptor in the exporter
    /// @param fabric the pool's fabric handle
    record Pool(String uuid, int handleType, int number, DriverHandle fabric) implements Message {}

    /// Asks to map the buffer that is published under a name.
    ///
    /// @param byteSize the expected length; 0 for any
    /// @param event the event that the importer will record after its uses
    record Map(String name, long byteSize, DriverHandle event) implements Message {}

    /// Describes the buffer that is published under that name.
    ///
    /// @param id the number of this use
    /// @param event the event that the exporter records after its work
    record Buffer(long id, long byteSize, DriverHandle pointer, DriverHandle event) implements Message {}

    /// Says that the importer has enqueued its last use and recorded its event.
    record Release(long id) implements Message {}

    /// Says that the exporter no longer needs the importer's event.
    record Released() implements Message {}

    /// Refuses, with the reason.
    record Refused(Reason reason, String text) implements Message {}

    private static int kind(Message message) {
        return switch (message) {
            case Hello _ -> 1;
            case Pool _ -> 2;
            case Map _ -> 3;
            case Buffer _ -> 4;
            case Release _ -> 5;
            case Released _ -> 6;
            case Refused _ -> 7;
        };
    }

    /// Returns the bytes of a message.
    static byte[] encode(Message message) {
        ByteBuffer buffer = ByteBuffer.allocate(MAX_BYTES).order(ByteOrder.LITTLE_ENDIAN);
        buffer.putInt(MAGIC)
                .putShort((short) VERSION)
                .putShort((short) kind(message))
                .putInt(0);
        switch (message) {
            case Hello hello -> buffer.putInt(hello.transfer().code());
            case Pool pool -> {
                putText(buffer, pool.uuid(), MAX_NAME_BYTES);
                buffer.putInt(pool.handleType()).putInt(pool.number());
                pool.fabric().writeTo(buffer);
            }
            case Map map -> {
                putText(buffer, map.name(), MAX_NAME_BYTES);
                buffer.putLong(map.byteSize());
                map.event().writeTo(buffer);
            }
            case Buffer found -> {
                buffer.putLong(found.id()).putLong(found.byteSize());
                found.pointer().writeTo(buffer);
                found.event().writeTo(buffer);
            }
            case Release release -> buffer.putLong(release.id());
            case Released _ -> {}
            case Refused refused -> {
                putText(buffer, refused.reason().name(), MAX_NAME_BYTES);
                putText(buffer, refused.text(), MAX_TEXT_BYTES);
            }
        }
        buffer.putInt(HEADER_BYTES - 4, buffer.position());
        return Arrays.copyOf(buffer.array(), buffer.position());
    }

    private static void putText(ByteBuffer buffer, String text, int mostBytes) {
        String fitting = text;
        while (fitting.getBytes(StandardCharsets.UTF_8).length > mostBytes) {
            fitting = fitting.substring(
                    0, fitting.offsetByCodePoints(0, fitting.codePointCount(0, fitting.length()) / 2));
        }
        byte[] bytes = fitting.getBytes(StandardCharsets.UTF_8);
        buffer.putShort((short) bytes.length).put(bytes);
    }

    /// Reads a message, and checks all that can be checked without the conversation.
    ///
    /// @throws SharingException [Reason#MALFORMED] or [Reason#WRONG_VERSION]
    static Message decode(byte[] bytes) {
        ByteBuffer buffer = ByteBuffer.wrap(bytes).order(ByteOrder.LITTLE_ENDIAN);
        try {
            require(buffer.getInt() == MAGIC, "it does not start like one");
            int version = Short.toUnsignedInt(buffer.getShort());
            int kind = Short.toUnsignedInt(buffer.getShort());
            require(buffer.getInt() == bytes.length, "its length is not the one in its header");
            if (version != VERSION && kind != 7) {
                throw new SharingException(
                        Reason.WRONG_VERSION,
                        "the other process speaks version " + version + " of the sharing protocol, this one " + VERSION
                                + "; use the same release of Cistern in both");
            }
            Message message = fields(kind, buffer);
            require(!buffer.hasRemaining(), buffer.remaining() + " bytes follow its last field");
            return message;
        } catch (BufferUnderflowException e) {
            throw new SharingException(Reason.MALFORMED, "a message of " + bytes.length + " bytes is truncated", e);
        }
    }

    private static Message fields(int kind, ByteBuffer buffer) {
        return switch (kind) {
            case 1 -> new Hello(transfer(buffer.getInt()));
            case 2 ->
                new Pool(text(buffer, MAX_NAME_BYTES), buffer.getInt(), buffer.getInt(), DriverHandle.readFrom(buffer));
            case 3 -> new Map(name(buffer), atLeast(0, buffer.getLong()), DriverHandle.readFrom(buffer));
            case 4 ->
                new Buffer(
                        buffer.getLong(),
                        atLeast(1, buffer.getLong()),
                        DriverHandle.readFrom(buffer),
                        DriverHandle.readFrom(buffer));
            case 5 -> new Release(buffer.getLong());
            case 6 -> new Released();
            case 7 -> new Refused(reason(text(buffer, MAX_NAME_BYTES)), text(buffer, MAX_TEXT_BYTES));
            default -> throw malformed("its kind is unknown: " + kind);
        };
    }

    /// Returns the reason that a name stands for. A later version may have reasons that this one does not know.
    private static Reason reason(String name) {
        return Arrays.stream(Reason.values())
                .filter(reason -> reason.name().equals(name))
                .findFirst()
                .orElse(Reason.PEER_FAILED);
    }

    private static Transfer transfer(int code) {
        return Arrays.stream(Transfer.values())
                .filter(transfer -> transfer.code() == code)
                .findFirst()
                .orElseThrow(() -> malformed("no transfer has the number " + code));
    }

    private static long atLeast(long least, long byteSize) {
        require(byteSize >= least, "its size is invalid: " + byteSize + " bytes");
        return byteSize;
    }

    private static String name(ByteBuffer buffer) {
        String name = text(buffer, MAX_NAME_BYTES);
        require(isName(name), "its name is invalid");
        return name;
    }

    /// Returns whether a buffer can be published under a name.
    static boolean isName(String name) {
        int byteSize = name.getBytes(StandardCharsets.UTF_8).length;
        return byteSize > 0
                && byteSize <= MAX_NAME_BYTES
                && name.chars().noneMatch(Character::isISOControl)
                && StandardCharsets.UTF_8.newEncoder().canEncode(name);
    }

    private static String text(ByteBuffer buffer, int mostBytes) {
        int length = Short.toUnsignedInt(buffer.getShort());
        require(length <= mostBytes, "a text of " + length + " bytes");
        byte[] bytes = new byte[length];
        buffer.get(bytes);
        try {
            return StandardCharsets.UTF_8
                    .newDecoder()
                    .decode(ByteBuffer.wrap(bytes))
                    .toString();
        } catch (CharacterCodingException e) {
            throw malformed("a text that is not UTF-8");
        }
    }

    private static void require(boolean condition, String what) {
        if (!condition) {
            throw malformed(what);
        }
    }

    private static SharingException malformed(String what) {
        return new SharingException(Reason.MALFORMED, "the other process sent something other than a message: " + what);
    }
}
