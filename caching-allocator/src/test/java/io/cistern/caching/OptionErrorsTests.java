package io.cistern.caching;

import static java.util.Map.entry;
import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatCode;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.cistern.caching.options.CachingOption;
import io.cistern.errors.ConfigurationException;
import java.lang.reflect.Field;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.stream.Stream;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.MethodSource;
import org.junit.jupiter.params.provider.ValueSource;

/// What can't be followed is an error that says what can.
class OptionErrorsTests extends PoolFixture {
    private static final String[] NO_FLAG = {"maybe", "1", "TRUE", "[true,false]"};

    /// Of another type, just out of the range, and more than one where one is taken.
    private static final Map<CachingOption<?>, String[]> BAD = Map.ofEntries(
            entry(CachingOption.SOURCE, new String[] {"[pages,linear]"}),
            entry(CachingOption.PAGE_SIZE, new String[] {"abc", "2097151", "1073741825", "0", "-1", "2MB", "[2MiB,4MiB]"
            }),
            entry(CachingOption.FIT, new String[] {"loose", "TIGHT"}),
            entry(CachingOption.REUSE, new String[] {"always", "true"}),
            entry(CachingOption.STABLE_MAPPING, NO_FLAG),
            entry(CachingOption.COMPACTION_BYTES, new String[] {"some", "-1", "8GB"}),
            entry(CachingOption.ALIGNMENT, new String[] {"wide", "300", "128", "4MiB", "0", "-256", "1GB"}),
            entry(CachingOption.SPLITS, NO_FLAG),
            entry(CachingOption.THREAD_CACHES, NO_FLAG),
            entry(CachingOption.THREAD_CACHE_BYTES, new String[] {"few", "1048575", "1073741825", "-1", "8MB"}),
            entry(CachingOption.INITIAL_BYTES, new String[] {"few", "-1", "8MB"}),
            entry(CachingOption.MAX_BYTES, new String[] {"many", "0", "-1", "8GB", "2097151"}),
            entry(CachingOption.CHECK, new String[] {"some", "true", "OFF"}),
            entry(CachingOption.EXPANDABLE_SEGMENTS, NO_FLAG),
            entry(CachingOption.PER_PROCESS_MEMORY_FRACTION, new String[] {"-0.1", "1.1", "2.0", "2", "NaN", "half"}),
            entry(CachingOption.THROW_ON_CUDAMALLOC_OOM, new String[] {"maybe", "1", "true"}));

    OptionErrorsTests() {
        super(64 * MIB);
    }

    private static Stream<CachingOption<?>> options() {
        return Stream.concat(CachingOption.OWN.stream(), CachingOption.PYTORCH.stream());
    }

    /// Of each option, so that none is forgotten here, in the reference, or in a message.
    @Test
    void everyOptionHasBadValues() throws IllegalAccessException {
        List<Object> declared = new ArrayList<>();
        for (Field field : CachingOption.class.getFields()) {
            if (field.getType() == CachingOption.class) {
                declared.add(field.get(null));
            }
        }
        assertThat(options()).containsExactlyInAnyOrderElementsOf(BAD.keySet());
        assertThat(declared).containsExactlyInAnyOrderElementsOf(BAD.keySet());
    }

    @ParameterizedTest
    @MethodSource("options")
    void aBadValueIsAnErrorThatNamesTheKeyAndWhatIsLegal(CachingOption<?> option) {
        for (String value : BAD.get(option)) {
            assertRefused("caching:" + option + '=' + value, "'" + option + "'");
            assertRefused("caching:" + option + '=' + value, option.legal().split(", "));
        }
    }

    @Test
    void whatIsLegalIsSaidOnce() {
        assertThatThrownBy(() -> memory.open("caching:per_process_memory_fraction=2"))
                .hasMessage(
                        "option 'per_process_memory_fraction' of 'caching': '2' is not a fraction from 0 to 1 (spec caching:per_process_memory_fraction=2)");
        assertThatThrownBy(() -> memory.open("caching:thread_caches=maybe"))
                .hasMessage(
                        "option 'thread_caches' of 'caching': 'maybe' is neither true nor false (spec caching:thread_caches=maybe)");
        assertThatThrownBy(() -> memory.open("caching:reuse=waits"))
                .hasMessage("option 'reuse' of 'caching': 'waits' is not one of these, nearest first: wait, never,"
                        + " adaptive (spec caching:reuse=waits)");
        assertThatThrownBy(() -> memory.open("caching:per_process_memory_fraction=2"))
                .hasMessage("option 'per_process_memory_fraction' of 'caching': '2' is not a fraction from 0 to 1"
                        + " (spec caching:per_process_memory_fraction=2)");
    }

    @ParameterizedTest
    @MethodSource("options")
    void theSameHoldsInsideAPyTorchString(CachingOption<?> option) {
        if (CachingOption.PYTORCH.contains(option)) {
            String value = BAD.get(option)[0];
            String spec = "caching:pytorch=\"" + option + ':' + value + '"';
            assertRefused(spec, "'" + option + "'");
            assertRefused(spec, option.legal().split(", "));
        } else {
            assertRefused("caching:pytorch=\"" + option + ":1\"", "'" + option + "'", "it takes, nearest first: ");
        }
    }

    /// The very bounds that messages name.
    @ParameterizedTest
    @ValueSource(
            strings = {
                "page_size=2MiB",
                "page_size=64MiB",
                "alignment=256",
                "alignment=2MiB",
                "thread_cache_bytes=1MiB",
                "thread_cache_bytes=1GiB",
                "max_bytes=2MiB",
                "initial_bytes=8MiB,max_bytes=8MiB",
                "per_process_memory_fraction=0.03125",
                "per_process_memory_fraction=1.0,throw_on_cudamalloc_oom=True",
            })
    void theBoundsAreLegal(String options) {
        assertThatCode(() -> memory.open("caching:" + options).close()).doesNotThrowAnyException();
    }

    @ParameterizedTest
    @CsvSource(
            delimiter = '|',
            value = {
                "max_bytes=1GiB,per_process_memory_fraction=0.5 | max_bytes | per_process_memory_fraction | leave one of them out",
                "initial_bytes=9MiB,max_bytes=8MiB      | initial_bytes | 9437184 | max_bytes",
                "initial_bytes=9223372036854775807      | initial_bytes | the size of device 0 | are available",
                "initial_bytes=9223372036854775807,source=managed | initial_bytes | the size of device 0 | are"
                        + " available",
                "splits=false,expandable_segments=true  | splits=false | expandable_segments=true | leave one of them out",
                "page_size=2MiB,expandable_segments=false | page_size | expandable_segments=false | splits=true",
                "fit=tight,expandable_segments=false    | fit | expandable_segments=false | splits=true",
                "reuse=adaptive,expandable_segments=false | reuse | expandable_segments=false | splits=true",
                "stable_mapping=true,expandable_segments=false | stable_mapping | expandable_segments=false | splits=true",
                "page_size=2MiB,splits=false            | page_size | splits=false | splits=true",
                "fit=tight,splits=false                 | fit | splits=false | splits=true",
                "reuse=adaptive,splits=false              | reuse | splits=false | splits=true",
                "stable_mapping=true,splits=false       | stable_mapping | splits=false | splits=true",
                "reuse=wait,stable_mapping=true         | reuse=wait | stable_mapping=true | reuse=never, or no reuse",
                "reuse=adaptive,stable_mapping=true       | reuse=adaptive | stable_mapping=true | reuse=never, or no reuse",
                "page_size=2MiB,fit=tight               | page_size | fit=tight | leave one of them out",
                "thread_cache_bytes=8MiB,thread_caches=false            | thread_cache_bytes | thread_caches=false | leave one of them out",
                "source=linear,expandable_segments=true | expandable_segments=true | source=linear | pages or vmm",
                "source=linear,page_size=2MiB           | page_size | source=linear | pages or vmm",
                "source=linear,fit=tight                | fit | source=linear | pages or vmm",
                "source=linear,reuse=adaptive             | reuse | source=linear | pages or vmm",
                "source=linear,stable_mapping=true      | stable_mapping | source=linear | pages or vmm",
                "throw_on_cudamalloc_oom=true | throw_on_cudamalloc_oom | per_process_memory_fraction | valid",
                "expandable_segments=true,pytorch=\"expandable_segments:True\" | expandable_segments | PyTorch string | give it once",
                "fit=tight,pytorch=\"backend:cudaMallocAsync\" | fit | backend:cudaMallocAsync | 'async'",
                "pytorch=\"expandable_segments\" | 'pytorch' | 'expandable_segments' | key:value",
                "pytorch=\"backend:cudaMallocAsync,per_process_memory_fraction:0.5\" | per_process_memory_fraction"
                        + " | backend:cudaMallocAsync | cistern.limit",
            })
    void aContradictionNamesBothAndTheWayOut(String options, String one, String other, String wayOut) {
        assertRefused("caching:" + options, one, other, wayOut);
    }

    @ParameterizedTest
    @CsvSource(
            delimiter = '|',
            value = {
                "caching:expandable_segment=true            | 'expandable_segment' | nearest first: expandable_segments",
                "caching:pytorch=\"expandable_segment:1\"   | 'expandable_segment' | nearest first: expandable_segments",
                "caching:pytorch=\"pined_num_register_threads:8\" | 'pined_num_register_threads' | nearest first: ",
                "caching:pytorch=\"backend:cuda\"          | 'backend'         | nearest first: cudaMallocAsync, native",
                "caching:pytorch=\"backend:cudaMallocAsync\" | 'async'         | caching",
                "caching:source=page                        | segment source is named 'page' | nearest first: pages",
            })
    void anUnknownNameTellsThoseThatThereAre(String spec, String name, String known) {
        assertRefused(spec, name, known);
    }

    private void assertRefused(String spec, String... parts) {
        assertThatThrownBy(() -> memory.open(spec).close())
                .as(spec)
                .isInstanceOf(ConfigurationException.class)
                .satisfies(error -> {
                    for (String part : parts) {
                        assertThat(error.getMessage()).contains(part.replace("`", ""));
                    }
                });
    }
}
