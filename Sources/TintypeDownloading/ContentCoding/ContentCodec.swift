/// Undoes one content coding, piece by piece.
///
/// Not sendable: only the loop's thread touches it.
protocol ContentCodec: AnyObject {
    /// Whether the coded stream has come to its end.
    var isComplete: Bool { get }
    /// The bytes of memory that it takes now, its window included.
    var heldByteCount: Int { get }

    /// Decodes from `input` into `output`, which has room.
    ///
    /// - Returns: The bytes taken and written; both are 0 where more input is needed. `nil` for what is no such
    ///   stream.
    func decode(_ input: UnsafeRawBufferPointer, into output: UnsafeMutableRawBufferPointer) -> CodecProgress?
}

/// What a codec has done.
struct CodecProgress {
    let taken: Int
    let written: Int
}

extension ContentCoding {
    /// What undoes the coding, or `nil` when there is no memory.
    func makeCodec() -> (any ContentCodec)? {
        switch self {
        case .gzip: InflateCodec(.gzip)
        case .deflate: InflateCodec(.zlibOrRaw)
        case .brotli: BrotliCodec()
        case .zstandard: ZstandardCodec()
        }
    }
}
