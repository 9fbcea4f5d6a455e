package io.cistern.internal.statistics;

import static org.assertj.core.api.Assertions.assertThat;

import java.util.LinkedHashMap;
import java.util.Map;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

class StatisticsTableTests {
    private static final long MIB = 1 << 20;

    @Test
    void aNameHasALineAndAMetricAColumn() {
        Map<String, Long> figures = new LinkedHashMap<>();
        figures.put("allocation.all.current", 3L);
        figures.put("allocation.all.allocated", 12L);
        figures.put("num_ooms", 0L);
        figures.put("allocation.all.freed", 9L);
        figures.put("allocated_bytes.small_pool.peak", 5 * MIB / 2);
        figures.put("allocated_bytes.small_pool.current", 0L);
        figures.put("a_name_that_is_wider_than_its_column.all.peak", 123_456_789_012L);
        figures.put("num_alloc_retries", 2L);
        figures.put("largest_free_block", 3 * MIB);
        assertThat(StatisticsTable.text("allocator caching, device 0", figures)).isEqualTo("""
                        allocator caching, device 0
                                                               current        peak   allocated       freed
                        allocation                                   3           -          12           9
                          allocated_bytes.small_pool               0 B    2.50 MiB           -           -
                        a_name_that_is_wider_than_its_column            - 123456789012           -           -
                        num_alloc_retries 2
                        largest_free_block 3.00 MiB
                        """);
    }

    @ParameterizedTest
    @CsvSource({
        "1, 1 B",
        "1023, 1023 B",
        "1024, 1.00 KiB",
        "-1536, -1.50 KiB",
        "-157286400, -150 MiB",
        "1073741824, 1.00 GiB",
        "2251799813685248, 2.00 PiB",
        "9223372036854775806, 8.00 EiB",
        "9223372036854775807, no limit"
    })
    void bytesHaveAUnitThatPeopleRead(long value, String shown) {
        assertThat(StatisticsTable.text("title", Map.of("limit_bytes", value)))
                .endsWith("\nlimit_bytes " + shown + "\n");
    }
}
