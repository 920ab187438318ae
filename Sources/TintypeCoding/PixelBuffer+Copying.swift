import TintypeImage

extension PixelBuffer {
    /// A copy of the first rows of a picture of one plane that is still being made; those that are missing are zero.
    ///
    /// - Parameters:
    ///   - layout: How the rows lie, and how many there will be.
    ///   - rows: Those that are there.
    ///   - work: Counts.
    /// - Throws: `ImageError` when memory runs out, `CancellationError`, `CodingError.Code.tooMuchWork`.
    convenience init(_ layout: PixelLayout, copying rows: UnsafeRawBufferPointer, work: DecodeWork) throws {
        try self.init(
            layout,
            fillingUnsafely: { target in
                for start in stride(from: 0, to: target.count, by: work.bytesAtOnce) {
                    let end = min(start + work.bytesAtOnce, target.count)
                    try work.count(copied: end - start)
                    let there = min(max(start, rows.count), end)
                    if start < there {
                        UnsafeMutableRawBufferPointer(rebasing: target[start..<there])
                            .copyMemory(from: UnsafeRawBufferPointer(rebasing: rows[start..<there]))
                    }
                    UnsafeMutableRawBufferPointer(rebasing: target[there..<end])
                        .initializeMemory(as: UInt8.self, repeating: 0)
                }
            }
        )
    }
}

extension DecodeWork {
    /// The bytes of pixels that are copied between two looks.
    fileprivate var bytesAtOnce: Int { 4 << 20 }

    /// Counts bytes of pixels that are about to be copied: the first touch of new memory costs most.
    func count(copied bytes: Int) throws {
        try self.count(bytes / 16)
    }
}
