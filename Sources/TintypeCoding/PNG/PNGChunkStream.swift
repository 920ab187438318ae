import CDeflate
import TintypeImage

/// Cuts bytes that arrive in pieces into chunks, of which it keeps nothing.
struct PNGChunkStream {
    /// What comes next in the bytes.
    enum Event {
        /// A chunk begins.
        case begin(PNGChunk.Kind)
        /// More of its content, as far as it has arrived.
        case content(PNGChunk.Kind, UnsafeRawBufferPointer)
        /// The chunk has ended, with the right checksum or a wrong one.
        case end(PNGChunk.Kind, isSound: Bool)
    }

    private enum State {
        case beforeChunk
        case inContent(PNGChunk.Kind, missing: Int)
        case inChecksum(PNGChunk.Kind)
    }

    private var state = State.beforeChunk
    /// A length and type, or a checksum, that has arrived in part.
    private var partial: UInt64 = 0
    private var partialCount = 0
    private var checksum: UInt32 = 0

    /// Reads as far as the next event.
    ///
    /// - Parameter input: What has arrived; what was used is taken off its front.
    /// - Returns: `nil` when it takes more bytes.
    /// - Throws: `CodingError` for a chunk that is too long.
    mutating func next(_ input: inout UnsafeRawBufferPointer) throws(CodingError) -> Event? {
        switch self.state {
        case .beforeChunk:
            guard let start = self.number(of: 8, from: &input) else { return nil }
            let kind = PNGChunk.Kind(rawValue: UInt32(truncatingIfNeeded: start))
            let length = Int(start >> 32)
            // Nothing is read behind the end chunk, its own length included.
            guard length <= PNGChunk.maximumLength || kind == .end else {
                throw .corrupt(.png, "a chunk is too long")
            }
            self.state = .inContent(kind, missing: length)
            self.checksum = withUnsafeBytes(of: kind.rawValue.bigEndian) { libdeflate_crc32(0, $0.baseAddress, 4) }
            return .begin(kind)
        case .inContent(let kind, let missing):
            guard missing > 0 else {
                self.state = .inChecksum(kind)
                return try self.next(&input)
            }
            guard !input.isEmpty else { return nil }
            let count = min(missing, input.count)
            let content = UnsafeRawBufferPointer(rebasing: input[..<count])
            input = UnsafeRawBufferPointer(rebasing: input[count...])
            self.checksum = libdeflate_crc32(self.checksum, content.baseAddress, count)
            self.state = .inContent(kind, missing: missing - count)
            return .content(kind, content)
        case .inChecksum(let kind):
            guard let stored = self.number(of: 4, from: &input) else { return nil }
            self.state = .beforeChunk
            return .end(kind, isSound: stored == UInt64(self.checksum))
        }
    }

    /// A number of some bytes, once all of them have arrived.
    private mutating func number(of count: Int, from input: inout UnsafeRawBufferPointer) -> UInt64? {
        while self.partialCount < count, let byte = input.first {
            self.partial = self.partial << 8 | UInt64(byte)
            self.partialCount += 1
            input = UnsafeRawBufferPointer(rebasing: input.dropFirst())
        }
        guard self.partialCount == count else { return nil }
        defer {
            self.partial = 0
            self.partialCount = 0
        }
        return self.partial
    }
}
