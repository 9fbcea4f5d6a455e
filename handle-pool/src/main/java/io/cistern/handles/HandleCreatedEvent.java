package io.cistern.handles;

import jdk.jfr.Description;
import jdk.jfr.Label;
import jdk.jfr.Name;

@Name("cistern.HandleCreated")
@Label("Library Handle Created")
@Description("A library created a handle; the duration is the library's")
final class HandleCreatedEvent extends HandleEvent {}
