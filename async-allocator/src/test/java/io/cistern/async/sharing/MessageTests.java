package io.cistern.async.sharing;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.catchThrowableOfType;

import io.cistern.cuda.Sharing;
import io.cistern.errors.SharingException;
import io.cistern.errors.SharingException.Reason;
import java.util.Arrays;
import java.util.List;
import java.util.random.RandomGenerator;
import java.util.random.RandomGeneratorFactory;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.MethodSource;

class MessageTests {
    private static DriverHandle handle(int value) {
        byte[] bytes = new byte[Sharing.HANDLE_BYTES];
        Arrays.fill(bytes, (byte) value);
        return new DriverHandle(bytes);
    }

    static List<Message> all() {
        return List.of(
                new Message.Hello(Transfer.PIDFD),
                new Message.Pool("00102030-4050-6070-8090-a0b0c0d0e0f0", 1, 17, handle(1)),
                new Message.Map("größe", 1L << 40, handle(2)),
                new Message.Buffer(7, 1L << 40, handle(3), handle(4)),
                new Message.Release(7),
                new Message.Released(),
                new Message.Refused(Reason.WRONG_SIZE, "too small"));
    }

    private static SharingException refusal(byte[] bytes) {
        return catchThrowableOfType(SharingException.class, () -> Message.decode(bytes));
    }

    @ParameterizedTest
    @MethodSource("all")
    void whatIsSentIsWhatIsRead(Message message) {
        byte[] bytes = Message.encode(message);
        assertThat(bytes.length).isLessThanOrEqualTo(Message.MAX_BYTES);
        Message read = Message.decode(bytes);
        assertThat(read).hasSameClassAs(message);
        assertThat(Message.encode(read)).isEqualTo(bytes);
    }

    @ParameterizedTest
    @MethodSource("all")
    void aMessageThatIsCutOffAnywhereIsRefused(Message message) {
        byte[] bytes = Message.encode(message);
        for (int length = 0; length < bytes.length; length++) {
            assertThat(refusal(Arrays.copyOf(bytes, length)).reason()).isEqualTo(Reason.MALFORMED);
        }
    }

    @ParameterizedTest
    @MethodSource("all")
    void whatFollowsAMessageIsRefused(Message message) {
        byte[] bytes = Message.encode(message);
        byte[] longer = Arrays.copyOf(bytes, bytes.length + 1);
        assertThat(refusal(longer).reason()).isEqualTo(Reason.MALFORMED);
        longer[8]++;
        assertThat(refusal(longer)).hasMessageContaining("1 bytes follow");
    }

    @Test
    void anotherVersionIsNamed() {
        byte[] bytes = Message.encode(new Message.Hello(Transfer.SOCKET));
        bytes[4] = 9;
        assertThat(refusal(bytes).reason()).isEqualTo(Reason.WRONG_VERSION);
        assertThat(refusal(bytes)).hasMessageContaining("version 9");
    }

    @Test
    void aRefusalIsReadInEveryVersion() {
        byte[] bytes = Message.encode(new Message.Refused(Reason.WRONG_VERSION, "speak 9"));
        bytes[4] = 9;
        assertThat(Message.decode(bytes)).isEqualTo(new Message.Refused(Reason.WRONG_VERSION, "speak 9"));
    }

    @Test
    void absurdSizesNamesAndNumbersAreRefused() {
        assertThat(refusal(Message.encode(new Message.Map("a", -1, handle(0)))).reason())
                .isEqualTo(Reason.MALFORMED);
        assertThat(refusal(Message.encode(new Message.Map("", 1, handle(0)))).reason())
                .isEqualTo(Reason.MALFORMED);
        assertThat(refusal(Message.encode(new Message.Map("a\u0000b", 1, handle(0))))
                        .reason())
                .isEqualTo(Reason.MALFORMED);
        assertThat(refusal(Message.encode(new Message.Buffer(1, 0, handle(0), handle(0))))
                        .reason())
                .isEqualTo(Reason.MALFORMED);
        byte[] transfer = Message.encode(new Message.Hello(Transfer.SOCKET));
        transfer[12] = 99;
        assertThat(refusal(transfer).reason()).isEqualTo(Reason.MALFORMED);
        byte[] kind = Message.encode(new Message.Released());
        kind[6] = 99;
        assertThat(refusal(kind).reason()).isEqualTo(Reason.MALFORMED);
        byte[] text = Message.encode(new Message.Map("abc", 1, handle(0)));
        text[14] = (byte) 0xff;
        assertThat(refusal(text)).hasMessageContaining("not UTF-8");
    }

    @Test
    void theHeaderIsThatOfAMessageOfThisLength() {
        for (int at : new int[] {0, 3, 8, 11}) {
            byte[] bytes = Message.encode(new Message.Released());
            bytes[at]++;
            assertThat(refusal(bytes).reason()).as("byte " + at).isEqualTo(Reason.MALFORMED);
        }
    }

    @Test
    void aTextThatIsTooLongIsRefused() {
        byte[] bytes = Message.encode(new Message.Refused(Reason.IN_USE, "x".repeat(Message.MAX_TEXT_BYTES)));
        assertThat(Message.decode(bytes)).isInstanceOf(Message.Refused.class);
        byte[] longer = Arrays.copyOf(bytes, bytes.length + 1);
        int length = bytes.length - Message.MAX_TEXT_BYTES - 2;
        longer[length]++;
        longer[8]++;
        assertThat(refusal(longer)).hasMessageContaining("a text of 1501 bytes");
    }

    @Test
    void aLongTextIsCutBetweenCharacters() {
        Message read = Message.decode(Message.encode(new Message.Refused(Reason.IN_USE, "ä€𝄞".repeat(1000))));
        assertThat(((Message.Refused) read).text()).startsWith("ä€𝄞").hasSizeGreaterThan(200);
    }

    @Test
    void noiseIsRefusedAndNeverAnythingElse() {
        long seed = Long.getLong("cistern.testkit.seed", 20_260_101L);
        RandomGenerator random = RandomGeneratorFactory.of("L64X128MixRandom").create(seed);
        List<Message> messages = all();
        for (int i = 0; i < 20_000; i++) {
            byte[] bytes = Message.encode(messages.get(random.nextInt(messages.size())));
            for (int flips = random.nextInt(4); flips >= 0; flips--) {
                bytes[random.nextInt(bytes.length)] = (byte) random.nextInt();
            }
            try {
                assertThat(Message.decode(bytes)).isNotNull();
            } catch (SharingException refused) {
                assertThat(refused.reason()).as("seed %d", seed).isIn(Reason.MALFORMED, Reason.WRONG_VERSION);
            }
        }
    }
}
