package io.cistern;

import static org.assertj.core.api.Assertions.assertThat;

import io.cistern.errors.ConfigurationException;
import io.cistern.reports.OwnJvm;
import java.util.List;
import org.junit.jupiter.api.Test;

class SystemDeviceMemoryTests {
    /// Asks twice, and says what came of it.
    static final class AskingTwice {
        public static void main(String[] arguments) {
            for (int i = 0; i < 2; i++) {
                try {
                    System.out.println(DeviceMemory.system());
                } catch (Throwable failure) {
                    System.out.println(failure);
                }
            }
        }
    }

    @Test
    void whatIsWrongIsToldEachTimeThatSomebodyAsks() throws Exception {
        String told =
                ConfigurationException.class.getName() + ": no catalogue of allocators: add cistern-pluggable-loader";

        List<String> output = OwnJvm.run(AskingTwice.class, "--enable-native-access=ALL-UNNAMED");

        assertThat(output).hasSize(2).allSatisfy(line -> assertThat(line).startsWith(told));
    }

    @Test
    void aDriverThatThereIsNotIsWrongConfiguration() throws Exception {
        String told = ConfigurationException.class.getName() + ": property cistern.driver: there is no driver 'cudda'";

        List<String> output =
                OwnJvm.run(AskingTwice.class, "--enable-native-access=ALL-UNNAMED", "-Dcistern.driver=cudda");

        assertThat(output).hasSize(2).allSatisfy(line -> assertThat(line).startsWith(told));
    }
}
