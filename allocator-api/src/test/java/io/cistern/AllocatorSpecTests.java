package io.cistern;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.assertj.core.api.Assertions.catchThrowable;

import io.cistern.errors.ConfigurationException;
import io.cistern.spi.options.AllocatorSpec;
import java.util.List;
import java.util.Map;
import java.util.random.RandomGenerator;
import java.util.random.RandomGeneratorFactory;
import java.util.stream.Collectors;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.ValueSource;

class AllocatorSpecTests {
    private static final String GRAMMAR = "; a spec is NAME or NAME:key=value,key=[a,b],key=\"quoted\"";

    @Test
    void aNameAloneHasNoOptions() {
        AllocatorSpec spec = AllocatorSpec.parse("caching");

        assertThat(spec.name()).isEqualTo("caching");
        assertThat(spec.options()).isEmpty();
        assertThat(spec.text()).isEqualTo("caching");
    }

    @Test
    void optionsKeepTheirOrder() {
        assertThat(AllocatorSpec.parse("caching:z=1,a=2,m=3").options().keySet())
                .containsExactly("z", "a", "m");
    }

    @Test
    void takesListsAndQuotedTexts() {
        assertThat(options("x:a=[p,q],b=\"one, [two] \\\"3\\\" \\\\\",c=[],d=[\"u,v\",w],e=\"\""))
                .isEqualTo(Map.of(
                        "a", List.of("p", "q"),
                        "b", List.of("one, [two] \"3\" \\"),
                        "c", List.of(),
                        "d", List.of("u,v", "w"),
                        "e", List.of("")));
    }

    @Test
    void takesTheFormOfPyTorch() {
        assertThat(options(
                        "caching:max_split_size_mb:128,roundup_power2_divisions:[256:1,>:8],expandable_segments:True"))
                .isEqualTo(Map.of(
                        "max_split_size_mb", List.of("128"),
                        "roundup_power2_divisions", List.of("256:1", ">:8"),
                        "expandable_segments", List.of("True")));
    }

    @Test
    void aValueMayBeASpecItself() {
        assertThat(options("caching:source=pages:location=host"))
                .isEqualTo(Map.of("source", List.of("pages:location=host")));
    }

    @Test
    void blanksAroundThePartsDoNotCount() {
        assertThat(options(" caching : a = 1 , b = [ p , q ] , c = \" kept \" "))
                .isEqualTo(Map.of("a", List.of("1"), "b", List.of("p", "q"), "c", List.of(" kept ")));
    }

    @ParameterizedTest
    @CsvSource(
            delimiterString = " => ",
            quoteCharacter = '`',
            value = {
                "`` => a name is expected at the end",
                ":a=1 => a name is expected at column 1",
                "caching: => a key is expected at the end",
                "caching a=1 => ':' or the end is expected at column 9",
                "caching:a => '=' is expected after key 'a' at the end",
                "caching:a= => a value is expected at the end",
                "caching:a=,b=1 => a value is expected at column 11",
                "caching:a=1,,b=2 => a key is expected at column 13",
                "caching:a=1, => a key is expected at the end",
                "caching:a=1 b=2 => ',' or the end is expected at column 13",
                "caching:a=[p,q => ',' or ']' is expected at the end",
                "caching:a=[p,] => a value is expected at column 14",
                "caching:a=[[p]] => a value is expected at column 12",
                "caching:a=p] => ',' or the end is expected at column 12",
                "caching:a=\"p => a closing '\"' is expected at the end",
                "caching:a=\"p\\n\" => '\"' or '\\' is expected after '\\' at column 14",
                "caching:a=1,b=2,a=3 => key 'a' is given twice at column 17"
            })
    void saysWhatIsWrongAndWhere(String text, String what) {
        assertThatThrownBy(() -> AllocatorSpec.parse(text))
                .isInstanceOf(ConfigurationException.class)
                .hasMessage("spec '" + text + "': " + what + GRAMMAR);
    }

    @ParameterizedTest
    @ValueSource(strings = {"a\0", "a:b=c\0", "a:b=c\0d", "\0"})
    void aNulCharacterIsNotTheEnd(String text) {
        assertThatThrownBy(() -> AllocatorSpec.parse(text)).isInstanceOf(ConfigurationException.class);
    }

    @Test
    void whatWasWrittenIsReadBack() {
        long seed = Long.getLong("cistern.testkit.seed", 20_260_101L);
        RandomGenerator random = RandomGeneratorFactory.getDefault().create(seed);
        for (int round = 0; round < 2000; round++) {
            Map<String, List<String>> options = randomOptions(random);
            String text = "name" + (options.isEmpty() ? "" : ":" + written(options));
            assertThat(options(text)).as("seed %d: %s", seed, text).isEqualTo(options);
        }
    }

    @Test
    void anyTextIsReadOrRefusedWithAConfigurationException() {
        long seed = Long.getLong("cistern.testkit.seed", 20_260_101L);
        RandomGenerator random = RandomGeneratorFactory.getDefault().create(seed);
        for (int round = 0; round < 20_000; round++) {
            String text = randomText(random, "ab=:,[]\"\\ \0é");
            Throwable thrown = catchThrowable(() -> AllocatorSpec.parse(text));
            if (thrown != null) {
                assertThat(thrown).as("seed %d: %s", seed, text).isInstanceOf(ConfigurationException.class);
            }
        }
    }

    private static Map<String, List<String>> options(String text) {
        return AllocatorSpec.parse(text).options();
    }

    private static Map<String, List<String>> randomOptions(RandomGenerator random) {
        return random.ints(random.nextInt(4), 0, 100)
                .boxed()
                .distinct()
                .collect(Collectors.toMap(
                        i -> "key" + i,
                        i -> random.ints(random.nextInt(4), 0, 1)
                                .mapToObj(ignored -> randomText(random, "ab,[]\"\\=: é"))
                                .toList()));
    }

    private static String randomText(RandomGenerator random, String characters) {
        return random.ints(random.nextInt(9), 0, characters.length())
                .mapToObj(i -> characters.substring(i, i + 1))
                .collect(Collectors.joining());
    }

    private static String written(Map<String, List<String>> options) {
        return options.entrySet().stream()
                .map(option -> option.getKey() + "="
                        + option.getValue().stream()
                                .map(AllocatorSpecTests::quoted)
                                .collect(Collectors.joining(",", "[", "]")))
                .collect(Collectors.joining(","));
    }

    private static String quoted(String value) {
        return '"' + value.replace("\\", "\\\\").replace("\"", "\\\"") + '"';
    }
}
