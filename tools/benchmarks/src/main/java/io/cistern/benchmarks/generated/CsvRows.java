package io.cistern.benchmarks.generated;

/// Collects the rows of a trace as CSV of format 2.
final class CsvRows implements TraceSink {
    private final StringBuilder text = new StringBuilder("op,id,bytes,stream,device,thread,nanos\n");

    @Override
    public void allocate(long id, long byteSize, long stream) {
        row('a', id, byteSize, stream);
    }

    @Override
    public void free(long id, long stream) {
        row('f', id, 0, stream);
    }

    @Override
    public void use(long id, long stream) {
        row('u', id, 0, stream);
    }

    @Override
    public void await(long stream, long awaited) {
        row('w', awaited, 0, stream);
    }

    @Override
    public void end(long stream) {
        row('e', 0, 0, stream);
    }

    private void row(char op, long id, long byteSize, long stream) {
        text.append(op).append(',').append(id).append(',').append(byteSize).append(',');
        text.append(stream).append(",0,0,0\n");
    }

    @Override
    public String toString() {
        return text.toString();
    }
}
