// SPDX-License-Identifier: Apache-2.0

import CTintypeGIF
import TintypeImage

/// Writes colour indices as pixels, in the order in which a GIF stores its rows.
///
/// Pixels outside the target are skipped. The target must outlive the writer.
struct GIFRowWriter: ~Copyable {
    /// The first rows of the four passes of an interlaced frame (GIF89a, appendix E).
    private static let passStarts = [0, 4, 2, 1]
    private static let passSteps = [8, 8, 4, 2]

    private let target: UnsafeMutableRawPointer
    /// The bytes of the target before the frame's first pixel.
    private let origin: Int
    private let bytesPerRow: Int
    private let bytesPerPixel: Int
    private let width: Int
    private let height: Int
    private let visibleWidth: Int
    private let visibleHeight: Int
    private let isInterlaced: Bool
    /// Whether transparent pixels leave the target unchanged.
    private let isLaidOver: Bool
    private let palette: UnsafeMutablePointer<UInt32>
    private var pass = 0
    private var row = 0
    private var column = 0
    /// The number of pixels that are not written yet.
    private(set) var remaining: Int

    /// Creates a writer for a frame.
    ///
    /// - Parameters:
    ///   - target: The first pixel of the target.
    ///   - layout: The layout of the target, with 3 or 4 bytes a pixel.
    ///   - origin: The place in the target where the frame begins.
    ///   - frame: The frame.
    ///   - visible: The size of the frame's part that lies on the target.
    ///   - palette: The frame's colours.
    ///   - isLaidOver: Whether transparent pixels leave the target unchanged, which must have alpha; `false` by
    ///     default.
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
        // The rows of a frame that lie below the target are not needed, unless the frame is interlaced.
        let rows = frame.isInterlaced ? self.height : visible.height
        self.remaining = visible.width > 0 && visible.height > 0 ? self.width * rows : 0
        self.palette = .allocate(capacity: 256)
        for index in 0..<256 { (self.palette + index).initialize(to: palette.pixels[index]) }
    }

    deinit {
        self.palette.deallocate()
    }

    /// Writes the next indices, and ignores the ones behind the last pixel.
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

    /// Writes the visible part of the pixels to the current row.
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
