/// Appends little-endian values to bytes.
struct ByteWriter {
    private(set) var bytes: [UInt8] = []

    mutating func append(_ value: some FixedWidthInteger) {
        withUnsafeBytes(of: value.littleEndian) { self.bytes.append(contentsOf: $0) }
    }

    mutating func append(_ text: String.UTF8View) {
        self.bytes.append(contentsOf: text)
    }

    mutating func append(_ bytes: [UInt8]) {
        self.bytes.append(contentsOf: bytes)
    }
}
