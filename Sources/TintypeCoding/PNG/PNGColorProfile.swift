import FoundationEssentials
import TintypeImage

/// Inflates the ICC profile of an `iCCP` chunk.
///
/// Source: W3C PNG, third edition, section 11.3.2.3. A profile says its own size in its first
/// bytes, so no more than that is inflated, and a bomb costs what an honest profile may cost.
enum PNGColorProfile {
    /// Profiles of printers take up to three megabytes.
    private static let maximumByteCount = 4 << 20
    /// The fixed header of a profile and its tag count (ICC.1, section 7.2).
    private static let minimumByteCount = 132
    private static let maximumNameLength = 80

    /// The profile in the content of a chunk, or `nil` when it is broken or too large.
    static func inflated(_ content: Data) -> Data? {
        content.withUnsafeBytes { bytes in
            guard let end = bytes.prefix(Self.maximumNameLength).firstIndex(of: 0) else { return nil }
            // Behind the name: its end, and the method, of which there is one.
            guard end + 2 < bytes.count, bytes[end + 1] == 0 else { return nil }
            var compressed = UnsafeRawBufferPointer(rebasing: bytes[(end + 2)...])
            guard let inflater = try? PNGInflater() else { return nil }
            guard let size = self.inflate(4, from: &compressed, inflater) else { return nil }
            let count = size.withUnsafeBytes { Int($0.bigEndian(at: 0) as UInt32) }
            guard (Self.minimumByteCount...Self.maximumByteCount).contains(count) else { return nil }
            guard let rest = self.inflate(count - 4, from: &compressed, inflater) else { return nil }
            return size + rest
        }
    }

    private static func inflate(
        _ count: Int,
        from compressed: inout UnsafeRawBufferPointer,
        _ inflater: PNGInflater
    ) -> Data? {
        var data = Data(count: count)
        let written = data.withUnsafeMutableBytes { (try? inflater.inflate(&compressed, into: $0)) ?? 0 }
        return written == count ? data : nil
    }
}
