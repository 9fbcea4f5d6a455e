package io.cistern.observability.jfr;

import jdk.jfr.Description;
import jdk.jfr.Label;
import jdk.jfr.Name;
import org.jspecify.annotations.Nullable;

@Name("cistern.Annotation")
@Label("Annotation")
@Description("The program marked a moment")
final class AnnotationEvent extends CisternEvent {
    @Label("Text")
    @Nullable
    String text;
}
