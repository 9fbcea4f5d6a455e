package io.cistern.caching.internal.growth;

import static org.assertj.core.api.Assertions.assertThat;

import io.cistern.caching.options.PageFit;
import io.cistern.caching.options.PageReuse;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

/// Which options keep idle pages apart.
final class PagePolicyTests {
    @ParameterizedTest
    @CsvSource({
        "0, TIGHT, ADAPTIVE, false, 1, ''",
        "0, TIGHT, ADAPTIVE, true, 0, 'stable_mapping=true'",
        "0, TIGHT, NEVER, true, 0, 'stable_mapping=true'",
        "0, TIGHT, NEVER, false, 1, 'reuse=never'",
        "4194304, USUAL, WAIT, false, 0, 'page_size'",
        "0, USUAL, WAIT, false, 1, 'fit=tight'",
        "0, TIGHT, WAIT, false, 0, 'compaction_bytes=0'",
        "0, USUAL, NEVER, false, 0, 'reuse=never fit=tight compaction_bytes=0'"
    })
    void eachOptionThatKeepsPagesApartIsNamed(
            long fixedBytes, PageFit fit, PageReuse reuse, boolean stable, long compactionBytes, String named) {
        PagePolicy policy = new PagePolicy(fixedBytes, fit, reuse, stable, compactionBytes);
        assertThat(policy.whyInPieces().stream().map(why -> why.split(" ")[0]))
                .containsExactly(named.isEmpty() ? new String[0] : named.split(" "));
    }
}
