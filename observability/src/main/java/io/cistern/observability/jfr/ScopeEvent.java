package io.cistern.observability.jfr;

import jdk.jfr.Description;
import jdk.jfr.Label;
import jdk.jfr.Name;

@Name("cistern.Scope")
@Label("Scope")
@Description("A thread allocated from an allocator or a pool through a scope")
final class ScopeEvent extends CisternEvent {}
