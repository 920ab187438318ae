// SPDX-License-Identifier: Apache-2.0

import FoundationEssentials
import TintypeImage

/// Writes images as the frames of one GIF.
///
/// A frame contains only the rectangle that changes, with its unchanged pixels transparent. Colours are exact if a
/// palette can hold them. The other frames may share one palette, if it shows them nearly as well as palettes of their
/// own, so that unchanged parts keep their colours from frame to frame. All passes read the images row by row, and do
/// not hold copies. Source: GIF89a, CompuServe 1990.
struct GIFEncoder: ~Copyable {
    private static let maximumSide = 65_535
    /// The most bytes of a frame's blocks without its data, and of a file's blocks.
    private static let (imageBlockBytes, fileBlockBytes) = (8 + 10 + 768, 13 + 768 + 19 + 1)

    private let frames: [AnimationContent.Frame]
    private let width: Int
    private let height: Int
    private let options: EncodeOptions
    private let isAnimation: Bool
    private let maximumColorCount: Int
    private let work: DecodeWork
    private let shared: GIFSharedColors
    private var output: GIFOutput

    /// Returns the file of an animation, or of a still image if `loopCount` is `nil`.
    ///
    /// - Throws: `CodingError`, `ImageError` when memory runs out, `CancellationError`.
    static func encode(_ frames: [AnimationContent.Frame], loopCount: Int?, options: EncodeOptions) throws -> Data {
        try Self.check(frames)
        let work = DecodeWork(DecodingLimits(maximumWork: .max), format: .gif)
        guard let maximumByteCount = options.maximumByteCount else {
            var encoder = try GIFEncoder(frames, isAnimation: loopCount != nil, options, colors: 256, work)
            try encoder.write(loopCount: loopCount ?? 1)
            return encoder.output.data()
        }
        for count in [256, 128, 64, 32, 16, 8, 4, 2] {
            var encoder = try GIFEncoder(frames, isAnimation: loopCount != nil, options, colors: count, work)
            try encoder.write(loopCount: loopCount ?? 1)
            let fits = encoder.output.count <= maximumByteCount
            if fits || count == 2 && !options.requiresMaximumByteCount { return encoder.output.data() }
        }
        throw CodingError.notEncoded(
            .gif,
            "The image cannot be written as GIF in \(maximumByteCount) bytes; make it smaller."
        )
    }

    /// Returns the most bytes that an encode of `frameCount` upright images allocates at once, with its result.
    static func byteCount(width: Int, height: Int, frameCount: Int) -> Int {
        // One quantizer counts the colours of all frames, and another one counts the frames one at a time.
        Self.outputByteCount(width: width, height: height, frameCount: frameCount)
            .saturatingAdded(to: GIFPatch.byteCount(width: width) + 2 * ColorQuantizer.byteCount)
    }

    /// Returns the most bytes of a file, and of a second version of one frame.
    private static func outputByteCount(width: Int, height: Int, frameCount: Int) -> Int {
        let image = GIFCodeWriter.mostBytes(pixelCount: width.saturatingMultiplied(by: height)) + Self.imageBlockBytes
        return image.saturatingMultiplied(by: frameCount > 1 ? frameCount.saturatingAdded(to: 1) : 1)
            .saturatingAdded(to: Self.fileBlockBytes + GIFCodeWriter.mostBytes(pixelCount: width))
    }

    private init(
        _ frames: [AnimationContent.Frame],
        isAnimation: Bool,
        _ options: EncodeOptions,
        colors maximumColorCount: Int,
        _ work: DecodeWork
    ) throws {
        let first = frames[0].image
        let (width, height) = first.orientation.uprightSize(width: first.width, height: first.height)
        self.frames = frames
        self.width = width
        self.height = height
        self.options = options
        self.isAnimation = isAnimation
        self.maximumColorCount = maximumColorCount
        self.work = work
        self.shared = try GIFSharedColors(of: frames, maximumColorCount, work: work)
        self.output = GIFOutput(
            expectedMaximum: Self.outputByteCount(width: width, height: height, frameCount: frames.count)
        )
    }

    // MARK: Frames

    private mutating func write(loopCount: Int) throws {
        var shown: GIFPixels?
        var image = try self.frames[0].image.upright().pixels
        for index in self.frames.indices {
            let pixels = GIFPixels(image)
            let next = try index + 1 < self.frames.count ? self.frames[index + 1].image.upright().pixels : nil
            // A pixel that the next frame shows as transparent must be cleared when this frame ends.
            let cleared = try next.flatMap { try pixels.area(clearedFor: GIFPixels($0), work: self.work) }
            let area = try self.area(of: pixels, shown: shown, cleared: cleared)
            try self.write(
                index,
                GIFDrawing(pixels: pixels, area: area, before: shown),
                isCleared: cleared != nil,
                loopCount: loopCount
            )
            shown = GIFPixels(image, cleared: cleared == nil ? nil : area)
            if let next { image = next }
        }
        try self.output.append([0x3B])
    }

    /// Returns the area of a frame: the first frame fills the canvas, and each other one covers the changes.
    private func area(of pixels: GIFPixels, shown: GIFPixels?, cleared: PixelArea?) throws -> PixelArea {
        guard let shown else { return pixels.area }
        let changed = try pixels.area(changedFrom: shown, work: self.work)
        let both = changed.map { changed in cleared.map(changed.union) ?? changed } ?? cleared
        return both ?? PixelArea(rows: 0..<1, columns: 0..<1)
    }

    private mutating func write(_ index: Int, _ drawing: GIFDrawing, isCleared: Bool, loopCount: Int) throws {
        let sharedPalette = self.shared.palette(ofFrame: index)
        let findsColors = sharedPalette == nil
        let changes = try GIFPatch.Scan(drawing, findsColors: findsColors, work: self.work)
        let exactChanges = self.exactPatch(changes)
        // Leaving out unchanged pixels is not always shorter, and costs an entry of the palette.
        var exactWhole: GIFPatch?
        if drawing.before != nil, changes.hasTransparency {
            let whole = GIFDrawing(pixels: drawing.pixels, area: drawing.area)
            let scan = try GIFPatch.Scan(whole, findsColors: findsColors, work: self.work)
            if !scan.hasTransparency { exactWhole = self.exactPatch(scan) }
        }
        let patch =
            try exactChanges ?? exactWhole
            ?? changes.nearestPatch(shared: sharedPalette, maximumColorCount: self.maximumColorCount, work: self.work)
        if index == 0 { try self.writeStart(firstPalette: patch.palette, loopCount: loopCount) }
        let start = self.output.count
        try self.write(index, patch, isCleared: isCleared)
        guard exactChanges != nil, let exactWhole else { return }
        let end = self.output.count
        try self.write(index, exactWhole, isCleared: isCleared)
        let isShorter = self.output.count - end < end - start
        self.output.remove(isShorter ? start..<end : end..<self.output.count)
    }

    private func exactPatch(_ scan: GIFPatch.Scan) -> GIFPatch? {
        scan.exactPatch(shared: self.shared.colors, maximumColorCount: self.maximumColorCount)
    }

    private mutating func write(_ index: Int, _ patch: GIFPatch, isCleared: Bool) throws {
        try self.writeControl(self.frames[index].milliseconds, patch: patch, isCleared: isCleared)
        try self.writeImage(patch, isFirst: index == 0)
        try patch.write(to: &self.output, isDithered: self.options.isDithered, work: self.work)
    }

    private static func check(_ frames: [AnimationContent.Frame]) throws(CodingError) {
        guard let first = frames.first?.image else {
            throw CodingError(code: .invalidOptions, message: "An animation has at least one frame.", format: .gif)
        }
        let size = first.orientation.uprightSize(width: first.width, height: first.height)
        guard size.width <= Self.maximumSide, size.height <= Self.maximumSide else {
            throw .notEncoded(
                .gif,
                "A GIF has at most \(Self.maximumSide) pixels on a side; make the image smaller."
            )
        }
        for frame in frames {
            let image = frame.image
            guard image.orientation.uprightSize(width: image.width, height: image.height) == size else {
                throw CodingError(
                    code: .invalidOptions,
                    message: "All frames of an animation have one size; resize those that differ.",
                    format: .gif
                )
            }
        }
    }

    // MARK: Blocks

    private mutating func writeStart(firstPalette: [UInt32], loopCount: Int) throws {
        // Add an entry for transparent pixels if there is room.
        let colors = self.shared.colors.map { $0.count < 256 ? $0.colors + [0] : $0.colors }
        let palette = colors ?? self.shared.palette.map { $0 + [0] } ?? firstPalette
        try self.output.append(Array("GIF89a".utf8))
        try self.output.append(self.width)
        try self.output.append(self.height)
        try self.output.append([0xF0 | UInt8(GIFPatch.tableBits(entryCount: palette.count)), 0, 0])
        try self.append(palette)
        guard loopCount != 1 else { return }
        try self.output.append([0x21, 0xFF, 11] + Array("NETSCAPE2.0".utf8) + [3, 1])
        try self.output.append(loopCount)
        try self.output.append([0])
    }

    private mutating func writeControl(_ milliseconds: Int, patch: GIFPatch, isCleared: Bool) throws {
        guard self.isAnimation || patch.transparentIndex != nil else { return }
        let disposal: UInt8 = isCleared ? 2 : self.isAnimation ? 1 : 0
        try self.output.append([0x21, 0xF9, 4, disposal << 2 | (patch.transparentIndex == nil ? 0 : 1)])
        // Decoders treat delays shorter than 2/100 s as mistakes.
        let hundredths = max(0, min(milliseconds, 1_000_000)) + 5
        try self.output.append(self.isAnimation ? max(2, hundredths / 10) : 0)
        try self.output.append([patch.transparentIndex ?? 0, 0])
    }

    private mutating func writeImage(_ patch: GIFPatch, isFirst: Bool) throws {
        let area = patch.drawing.area
        try self.output.append([0x2C])
        for number in [area.columns.lowerBound, area.rows.lowerBound, area.columns.count, area.rows.count] {
            try self.output.append(number)
        }
        // Without shared colours the first frame's palette is that of the file.
        let isInStart = isFirst && self.shared.colors == nil && self.shared.palette == nil
        if patch.isShared || isInStart {
            try self.output.append([0])
        } else {
            try self.output.append([0x80 | UInt8(GIFPatch.tableBits(entryCount: patch.palette.count))])
            try self.append(patch.palette)
        }
    }

    private mutating func append(_ palette: [UInt32]) throws {
        let missing = GIFPatch.tableSize(of: palette) - palette.count
        try self.output.append(palette.paletteBytes + Array(repeating: 0, count: missing * 3))
    }
}
