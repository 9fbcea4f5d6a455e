// Numbers as people read them.

const BYTE_UNITS = ["B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"];

/** Three digits and a unit: "640 B", "2.00 MiB", "12.3 GiB". */
function bytesText(bytes) {
  if (bytes == null || !isFinite(bytes)) {
    return "unknown";
  }
  let value = Math.abs(bytes);
  let unit = 0;
  while (value >= 1023.5 && unit < BYTE_UNITS.length - 1) {
    value /= 1024;
    unit++;
  }
  return (bytes < 0 ? "\u2212" : "") + (unit === 0 ? Math.round(value) : threeDigits(value)) + " " + BYTE_UNITS[unit];
}

function threeDigits(value) {
  return value.toFixed(value < 9.995 ? 2 : value < 99.95 ? 1 : 0);
}

/** "41 ms", "3.2 s", "2 min 5 s". */
function secondsText(seconds) {
  if (seconds == null || !isFinite(seconds)) {
    return "unknown";
  }
  const size = Math.abs(seconds);
  if (size === 0) {
    return "0 s";
  }
  if (size < 1e-6) {
    return Math.round(seconds * 1e9) + " ns";
  }
  if (size < 1e-3) {
    return trimmed(seconds * 1e6) + " \u00b5s";
  }
  if (size < 1) {
    return trimmed(seconds * 1e3) + " ms";
  }
  const whole = Math.round(size);
  if (whole < 120) {
    return trimmed(seconds) + " s";
  }
  const minutes = Math.round(whole / 60);
  return whole < 7200
    ? Math.floor(whole / 60) + " min " + whole % 60 + " s"
    : Math.floor(minutes / 60) + " h " + minutes % 60 + " min";
}

/** At most three digits, without zeros at the end. */
function trimmed(value) {
  return String(Number(threeDigits(value)));
}

function countText(count) {
  return count.toLocaleString("en");
}

/** "1 block", "12 blocks". */
function counted(count, word) {
  return countText(count) + " " + word + (count === 1 ? "" : "s");
}

function percentText(part, whole) {
  if (!(whole > 0)) {
    return "0 %";
  }
  const percent = (100 * part) / whole;
  return (percent > 0 && percent < 1 ? "< 1" : Math.round(percent)) + " %";
}

function addressText(address) {
  return "0x" + address.toString(16);
}

/** The streams that CUDA's handles 0 to 2 name. */
const DEFAULT_STREAMS = { 0: "default stream", 1: "legacy default stream", 2: "per-thread default stream" };

function streamText(stream) {
  return stream == null ? "any stream" : stream < 0 ? "default stream of thread " + (-1 - stream)
    : DEFAULT_STREAMS[stream] ?? "stream " + addressText(stream);
}

/** A stream within a sentence. */
function theStream(stream) {
  return streamText(stream).replace(/^.*default stream/, "the $&");
}
