package io.cistern.internal.threads;

import static org.assertj.core.api.Assertions.assertThat;

import java.util.List;
import org.junit.jupiter.api.Test;

class NodeQueueTests {
    private final NodeQueue<String> queue = new NodeQueue<>();
    private final List<NodeQueue.Node<String>> nodes =
            List.of(new NodeQueue.Node<>("a"), new NodeQueue.Node<>("b"), new NodeQueue.Node<>("c"));

    @Test
    void nodesComeOutInTheOrderOfAdding() {
        nodes.forEach(queue::add);
        assertThat(queue.peek()).isSameAs(nodes.getFirst());
        assertThat(queue.peek()).as("it stays").isSameAs(nodes.getFirst());
        for (NodeQueue.Node<String> each : nodes) {
            assertThat(queue.poll()).isSameAs(each);
        }
        assertThat(queue.peek()).isNull();
        assertThat(queue.poll()).isNull();
    }

    @Test
    void aNodeThatCameOutMayBeAddedAgain() {
        nodes.forEach(queue::add);
        for (int i = 0; i < 2 * nodes.size(); i++) {
            NodeQueue.Node<String> taken = queue.poll();
            assertThat(taken.value()).isEqualTo(nodes.get(i % nodes.size()).value());
            queue.add(taken);
        }
        nodes.forEach(_ -> queue.poll());
        assertThat(queue.poll()).isNull();
        queue.add(nodes.getFirst());
        assertThat(queue.poll()).isSameAs(nodes.getFirst());
        assertThat(queue.poll()).isNull();
    }
}
