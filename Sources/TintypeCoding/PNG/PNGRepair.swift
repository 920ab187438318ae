import FoundationEssentials

/// Closes a PNG that ends inside a chunk, so that the part of the chunk that is there is read.
///
/// libspng reads chunks whole. The last, cut one gets the length that it has; its checksum is
/// wrong then, which a lenient decode overlooks.
enum PNGRepair {
    private static let chunkOverhead = 12

    /// The data itself when no chunk is cut.
    static func closingLastChunk(of data: Data) -> Data {
        var offset = 8
        while let length = data.uint32(at: offset) {
            let end = offset + Self.chunkOverhead + length
            guard end > data.count else {
                offset = end
                continue
            }
            let available = data.count - offset - 8
            guard available > 0 else { break }
            var closed = data.slice(from: 0, to: offset)
            withUnsafeBytes(of: UInt32(clamping: available).bigEndian) { closed.append(contentsOf: $0) }
            closed.append(data.slice(from: offset + 4, to: data.count))
            closed.append(contentsOf: [0, 0, 0, 0])
            return closed
        }
        return data
    }
}
