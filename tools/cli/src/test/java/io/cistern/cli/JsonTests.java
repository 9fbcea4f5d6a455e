package io.cistern.cli;

import static org.assertj.core.api.Assertions.assertThat;

import java.util.Arrays;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import org.junit.jupiter.api.Test;

/// The writer's lines are JSON whatever is in them.
final class JsonTests {
    @Test
    void writesObjectsArraysNumbersAndNull() {
        Map<String, Object> object = new LinkedHashMap<>();
        object.put("text", "a");
        object.put("list", List.of(1, 2L, true));
        object.put("half", 0.5);
        object.put("none", null);
        object.put("nothing", List.of());

        assertThat(Json.write(object))
                .isEqualTo("{\"text\":\"a\",\"list\":[1,2,true],\"half\":0.500,\"none\":null,\"nothing\":[]}");
    }

    @Test
    void escapesWhatWouldEndTheStringOrTheLine() {
        assertThat(Json.write("\"\\\n\r\t\u0000\u001f\u007f ü \ud83d\ude00 \ud800"))
                .isEqualTo("\"\\\"\\\\\\n\\r\\t\\u0000\\u001f\\u007f ü \\ud83d\\ude00 \\ud800\"");
    }

    @Test
    void whatIsNoNumberIsNull() {
        assertThat(Json.write(Arrays.asList(Double.NaN, Double.POSITIVE_INFINITY)))
                .isEqualTo("[null,null]");
    }
}
