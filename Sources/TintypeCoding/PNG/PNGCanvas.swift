import Glibc
import TintypeImage

/// The pixels of a picture whose bytes are still arriving, and pictures of what is known.
final class PNGCanvas {
    private let layout: PixelLayout
    private let passes: [PNGPass]
    private let pixels: UnsafeMutableRawBufferPointer
    private var picture: PNGPicture
    /// Counts previews apart: they must not use up what the picture itself needs.
    ///
    /// How many there are is not its affair.
    let previewWork = DecodeWork(.none, format: .png)
    /// Where the last scanline belonged.
    private var last: (pass: Int, row: Int)?

    /// Allocates black or transparent pixels.
    init(_ header: PNGHeader, output: PixelFormat) throws {
        let layout = try PixelLayout(format: output, width: header.layout.width, height: header.layout.height)
        // Zeroed by the system where it is touched: what never arrives costs nothing.
        guard let base = calloc(1, layout.byteCount) else { throw CodingError.outOfMemory(.png) }
        self.layout = layout
        self.passes = header.layout.passes
        self.pixels = UnsafeMutableRawBufferPointer(start: base, count: layout.byteCount)
        self.picture = PNGPicture(
            PNGSampleConverter(header, output: output),
            passes: self.passes,
            layout: layout,
            pixels: self.pixels
        )
    }

    deinit {
        free(self.pixels.baseAddress)
    }

    /// Writes the pixels of a scanline.
    func write(_ line: PNGScanlines.Line) {
        self.picture.write(line)
        self.last = (line.pass, line.row)
    }

    /// A copy of the pixels as they are.
    func copy(work: DecodeWork) throws -> PixelBuffer {
        try PixelBuffer(self.layout, copying: UnsafeRawBufferPointer(self.pixels), work: work)
    }

    /// A picture of what is known: each pixel of an interlaced picture stands for those around
    /// it that have not arrived.
    func preview() throws -> PixelBuffer {
        guard self.passes[0].columnStep > 1, let last = self.last else {
            return try self.copy(work: self.previewWork)
        }
        let isWhole = last.row + 1 == self.passes[last.pass].height
        let whole = isWhole ? last.pass : last.pass - 1
        return try PixelBuffer(
            self.layout,
            fillingUnsafely: { target in
                if whole >= 0 {
                    try self.enlarge(self.passes[whole], to: target)
                } else {
                    target.initializeMemory(as: UInt8.self, repeating: 0)
                }
                if !isWhole { try self.overlay(self.passes[last.pass], rows: last.row + 1, on: target) }
            }
        )
    }

    /// Fills the picture from the grid of pixels that is known after a pass.
    private func enlarge(_ pass: PNGPass, to target: UnsafeMutableRawBufferPointer) throws {
        guard let from = self.pixels.baseAddress, let to = target.baseAddress else { return }
        let bytesPerRow = self.layout.planes[0].bytesPerRow
        let channels = self.layout.format.channelCount
        for row in 0..<self.layout.height {
            try self.previewWork.count(self.layout.width)
            let source = from + (row - row % pass.blockHeight) * bytesPerRow
            let start = to + row * bytesPerRow
            for column in 0..<self.layout.width {
                let known = source + (column - column % pass.blockWidth) * channels
                (start + column * channels).copyMemory(from: known, byteCount: channels)
            }
        }
    }

    /// Lays the rows of a pass that is not whole over the picture.
    private func overlay(_ pass: PNGPass, rows: Int, on target: UnsafeMutableRawBufferPointer) throws {
        guard let from = self.pixels.baseAddress, let to = target.baseAddress else { return }
        let bytesPerRow = self.layout.planes[0].bytesPerRow
        let channels = self.layout.format.channelCount
        for index in 0..<rows {
            try self.previewWork.count(self.layout.width * pass.blockHeight)
            let top = pass.top + index * pass.rowStep
            for row in top..<min(top + pass.blockHeight, self.layout.height) {
                for left in stride(from: pass.left, to: self.layout.width, by: pass.columnStep) {
                    let known = from + top * bytesPerRow + left * channels
                    for column in left..<min(left + pass.blockWidth, self.layout.width) {
                        (to + row * bytesPerRow + column * channels).copyMemory(from: known, byteCount: channels)
                    }
                }
            }
        }
    }
}
