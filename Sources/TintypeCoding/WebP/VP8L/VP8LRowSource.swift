import TintypeImage

/// Gives the rows of a lossless still as they are decoded.
///
/// Used only while the bytes of the file are lent.
final class VP8LRowSource: RowSource {
    let layout: PixelLayout
    private let stream: UnsafeRawBufferPointer
    private let isOpaque: Bool
    private let allowsTruncated: Bool
    private let work: DecodeWork
    private var decoder: VP8LDecoder
    /// Whether the rest is missing, and zero.
    private var isOver = false

    init(
        _ picture: WebPCodedPicture,
        of bytes: UnsafeRawBufferPointer,
        layout: PixelLayout,
        allowsTruncated: Bool,
        work: DecodeWork
    ) {
        self.layout = layout
        self.stream = picture.losslessStream(of: bytes)
        self.isOpaque = !picture.frame.hasAlpha
        self.allowsTruncated = allowsTruncated
        self.work = work
        self.decoder = VP8LDecoder(width: layout.width, height: layout.height)
    }

    func readRow(into row: UnsafeMutableRawBufferPointer) throws {
        let used = self.layout.planes[0].usedBytesPerRow
        guard let target = row.baseAddress, row.count >= used else { preconditionFailure("The row does not fit.") }
        if self.decoder.row == 0 { try Task.checkCancellation() }
        if !self.isOver {
            do {
                return try self.decoder.readRow(
                    to: target,
                    hasAlpha: self.layout.format.hasAlpha,
                    isOpaque: self.isOpaque,
                    from: self.stream,
                    work: self.work
                )
            } catch let error as VP8LError {
                guard self.allowsTruncated, !error.isFatal(afterRows: self.decoder.row) else { throw CodingError(error) }
                self.isOver = true
            }
        }
        target.initializeMemory(as: UInt8.self, repeating: 0, count: used)
    }
}
