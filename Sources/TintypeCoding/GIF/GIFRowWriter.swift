import CGIF
import TintypeImage

/// Turns colour indices into pixels, row after row, in the order in which a GIF stores them.
///
/// Rows and columns that do not lie on the target are passed over. The target must outlive the writer.
struct GIFRowWriter: ~Copyable {
    /// Where the four passes of an interlaced image begin (GIF89a, appendix E).
    private static let passStarts = [0, 4, 2, 1]
    private static let passSteps = [8, 8, 4, 2]

    private let target: UnsafeMutableRawPointer
    /// The bytes before the image's first pixel.
    private let origin: Int
    private let bytesPerRow: Int
    private let bytesPerPixel: Int
    private let width: Int
    private let height: Int
    private let visibleWidth: Int
    private let visibleHeight: Int
    private let isInterlaced: Bool
    /// Whether the target shows where pixels are transparent.
    private let isLaidOver: Bool
    private let palette: UnsafeMutablePointer<UInt32>
    private var pass = 0
    private var row = 0
    private var column = 0
    /// The pixels that are still to come.
    private(set) var remaining: Int

    /// Prepares to write an image.
    ///
    /// - Parameters:
    ///   - target: The first pixel of an image.
    ///   - layout: Its layout, with 3 or 4 bytes a pixel.
    ///   - origin: Where the image begins in the image.
    ///   - frame: The image.
    ///   - visible: How much of it lies on the image.
    ///   - palette: Its colours.
    ///   - isLaidOver: Whether the target, which has alpha, keeps what it has where a pixel is transparent.
    init(
        target: UnsafeMutableRawPointer,
        layout: PixelLayout,
        origin: (column: Int, row: Int),
        frame: GIFFrame,
        visible: (width: Int, height: Int),
        palette: GIFPalette,
        isLaidOver: Bool = false
    ) {
        self.bytesPerRow = layout.planes[0].bytesPerRow
        self.bytesPerPixel = layout.format.channelCount
        self.origin = origin.row * self.bytesPerRow + origin.column * self.bytesPerPixel
        self.target = target
        self.width = Int(frame.width)
        self.height = Int(frame.height)
        self.visibleWidth = visible.width
        self.visibleHeight = visible.height
        self.isInterlaced = frame.isInterlaced
        self.isLaidOver = isLaidOver
        // The rows of a plain image that lie below the image need not be known.
        let rows = frame.isInterlaced ? self.height : visible.height
        self.remaining = visible.width > 0 && visible.height > 0 ? self.width * rows : 0
        self.palette = .allocate(capacity: 256)
        for index in 0..<256 { (self.palette + index).initialize(to: palette.pixels[index]) }
    }

    deinit {
        self.palette.deallocate()
    }

    /// Writes the next indices; what is too much is left out.
    mutating func write(_ indices: UnsafePointer<UInt8>, count: Int) {
        var indices = indices
        var count = min(count, self.remaining)
        while count > 0, self.remaining > 0 {
            let part = min(count, self.width - self.column)
            if self.row < self.visibleHeight { self.expand(indices, count: part) }
            indices += part
            count -= part
            self.remaining -= part
            self.column += part
            if self.column == self.width { self.beginNextRow() }
        }
    }

    private mutating func beginNextRow() {
        self.column = 0
        guard self.isInterlaced else {
            self.row += 1
            return
        }
        self.row += Self.passSteps[self.pass]
        while self.row >= self.height, self.pass < 3 {
            self.pass += 1
            self.row = Self.passStarts[self.pass]
        }
    }

    /// Writes pixels to the current row, as many as are visible.
    private func expand(_ indices: UnsafePointer<UInt8>, count: Int) {
        let count = min(count, self.visibleWidth - self.column)
        guard count > 0 else { return }
        let target = self.target + self.origin + self.row * self.bytesPerRow + self.column * self.bytesPerPixel
        cgif_expand(
            self.palette,
            indices,
            count,
            target.assumingMemoryBound(to: UInt8.self),
            self.bytesPerPixel,
            self.isLaidOver
        )
    }
}
