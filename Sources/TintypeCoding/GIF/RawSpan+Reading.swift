/// Checked reads from untrusted bytes: `nil` past the end, never a trap.
///
/// `Data` can do the same, and takes ten times as long for each byte.
extension RawSpan {
    /// The byte at `offset`, which is not negative.
    func byte(at offset: Int) -> UInt8? {
        offset < self.byteCount ? self.unsafeLoad(fromByteOffset: offset, as: UInt8.self) : nil
    }

    /// The unsigned number of two bytes at `offset`, the lower byte first.
    func uint16(at offset: Int) -> Int? {
        guard let low = self.byte(at: offset), let high = self.byte(at: offset + 1) else { return nil }
        return Int(high) << 8 | Int(low)
    }

    /// Whether the ASCII `text` stands at `offset`.
    func has(_ text: StaticString, at offset: Int) -> Bool {
        guard offset + text.utf8CodeUnitCount <= self.byteCount else { return false }
        for index in 0..<text.utf8CodeUnitCount where self.byte(at: offset + index) != text.utf8Start[index] {
            return false
        }
        return true
    }
}
