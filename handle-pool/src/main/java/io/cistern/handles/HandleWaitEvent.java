package io.cistern.handles;

import jdk.jfr.Description;
import jdk.jfr.Label;
import jdk.jfr.Name;
import jdk.jfr.StackTrace;

@Name("cistern.HandleWait")
@Label("Library Handle Wait")
@Description("A thread waited for a library handle, since as many as the pool may have were in use")
@StackTrace(true)
final class HandleWaitEvent extends HandleEvent {}
