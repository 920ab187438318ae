import FoundationEssentials
import TintypeImage

/// Writes pictures as the frames of one GIF.
///
/// A frame holds only the rectangle that changes, transparent where nothing changes in it. Colours are exact where a
/// palette can hold them. The frames for which none can share one that was chosen for all of them, as long as that
/// shows them nearly as well as one of their own would: what stands still must not change its colour from frame to frame.
/// Source: GIF89a, CompuServe 1990.
struct GIFEncoder {
    private static let maximumSide = 65_535

    private let width: Int
    private let height: Int
    private let options: EncodeOptions
    private let isAnimation: Bool
    private let maximumColorCount: Int
    /// The colours of all frames, where a palette can hold them.
    private let sharedColors: ColorSet?
    /// The colours that show frames of too many colours nearly as well as colours of their own.
    private let sharedPalette: [UInt32]?
    /// For each frame whether a palette can hold its colours, where there are frames that share one.
    private let isExact: [Bool]
    /// How much larger the mean squared error of a shared palette may be, and what is too small to be seen.
    private static let (toleratedRatio, invisibleError) = (1.5, 12.0)
    private var bytes: [UInt8] = []

    /// The bytes of an animation, or of a still picture when `loopCount` is `nil`.
    ///
    /// - Throws: `CodingError`, `ImageError` when memory runs out, `CancellationError`.
    static func encode(_ frames: [AnimationContent.Frame], loopCount: Int?, options: EncodeOptions) throws -> Data {
        try Self.check(frames)
        guard let maximumByteCount = options.maximumByteCount else {
            return try Self.encode(frames, loopCount: loopCount, options: options, maximumColorCount: 256)
        }
        for maximumColorCount in [256, 128, 64, 32, 16, 8, 4, 2] {
            let data = try Self.encode(
                frames,
                loopCount: loopCount,
                options: options,
                maximumColorCount: maximumColorCount
            )
            if data.count <= maximumByteCount { return data }
        }
        throw CodingError.notEncoded(
            .gif,
            "The picture can't be written as GIF in \(maximumByteCount) bytes; make it smaller."
        )
    }

    private static func encode(
        _ frames: [AnimationContent.Frame],
        loopCount: Int?,
        options: EncodeOptions,
        maximumColorCount: Int
    ) throws -> Data {
        var encoder = try GIFEncoder(
            frames,
            isAnimation: loopCount != nil,
            options: options,
            maximumColorCount: maximumColorCount
        )
        try encoder.write(frames, loopCount: loopCount ?? 1)
        return Data(encoder.bytes)
    }

    private init(
        _ frames: [AnimationContent.Frame],
        isAnimation: Bool,
        options: EncodeOptions,
        maximumColorCount: Int
    ) throws {
        let (width, height) = frames[0].image.orientation.uprightSize(
            width: frames[0].image.width,
            height: frames[0].image.height
        )
        self.width = width
        self.height = height
        self.options = options
        self.isAnimation = isAnimation
        self.maximumColorCount = maximumColorCount
        var colors = ColorSet()
        let areFew = try frames.allSatisfy { colors.insert(opaque: try GIFPicture($0.image.pixels).pixels) }
        let isExact = areFew && colors.colors.count <= maximumColorCount
        self.sharedColors = isExact ? colors : nil
        // One picture has nothing to share, and is not looked at again.
        guard !isExact, frames.count > 1 else {
            self.sharedPalette = nil
            self.isExact = []
            return
        }
        self.isExact = try frames.map { frame in
            var colors = ColorSet()
            let areFew = colors.insert(opaque: try GIFPicture(frame.image.pixels).pixels)
            return areFew && colors.colors.count <= maximumColorCount
        }
        let others = zip(frames, self.isExact).filter { !$0.1 }.map(\.0)
        self.sharedPalette = try Self.palette(of: others, maximumColorCount)
    }

    /// The palette that frames share, with room for the entry that draws nothing; `nil` where frames of their own
    /// colours are shown better.
    private static func palette(of frames: [AnimationContent.Frame], _ maximumColorCount: Int) throws -> [UInt32]? {
        guard maximumColorCount > 2, frames.count > 1 else { return nil }
        var whole = ColorQuantizer()
        for frame in frames { whole.count(try GIFPicture(frame.image.pixels).pixels) }
        let palette = try whole.colors(maximum: maximumColorCount - 1)
        for frame in frames {
            var quantizer = ColorQuantizer()
            quantizer.count(try GIFPicture(frame.image.pixels).pixels)
            let own = quantizer.error(of: try quantizer.colors(maximum: maximumColorCount - 1))
            guard quantizer.error(of: palette) <= max(Self.invisibleError, own * Self.toleratedRatio) else {
                return nil
            }
        }
        return palette
    }

    private mutating func write(_ frames: [AnimationContent.Frame], loopCount: Int) throws {
        var canvas = GIFPicture(width: self.width, height: self.height)
        var picture = try GIFPicture(try frames[0].image.upright().pixels)
        for index in frames.indices {
            let next = try index + 1 < frames.count ? GIFPicture(try frames[index + 1].image.upright().pixels) : nil
            // What a later frame shows as transparent can only be cleared away with this one.
            let cleared = next.flatMap { next in picture.area(with: next) { $0 != 0 && $1 == 0 } }
            let area = self.area(of: picture, on: canvas, isFirst: index == 0, cleared: cleared)
            // What can be exact stays so.
            let sharedPalette = self.sharedPalette.flatMap { self.isExact[index] ? nil : $0 }
            let patch = try self.patch(of: picture, on: canvas, area: area, sharedPalette)
            if index == 0 { self.writeStart(firstPalette: patch.palette, loopCount: loopCount) }
            self.writeControl(frames[index].milliseconds, patch: patch, isCleared: cleared != nil)
            self.writeImage(patch, area: area, isFirst: index == 0)
            canvas = picture
            if cleared != nil { canvas.clear(area) }
            if let next { picture = next }
        }
        self.bytes.append(0x3B)
    }

    /// The first frame fills the canvas; the others hold what changes.
    private func area(of picture: GIFPicture, on canvas: GIFPicture, isFirst: Bool, cleared: PixelArea?) -> PixelArea {
        if isFirst { return PixelArea(rows: 0..<self.height, columns: 0..<self.width) }
        let changed = picture.area(with: canvas) { $0 != $1 }
        let both = changed.map { changed in cleared.map(changed.union) ?? changed } ?? cleared
        return both ?? PixelArea(rows: 0..<1, columns: 0..<1)
    }

    private func patch(
        of picture: GIFPicture,
        on canvas: GIFPicture,
        area: PixelArea,
        _ sharedPalette: [UInt32]?
    ) throws -> GIFPatch {
        func patch(_ pixels: [UInt32], mustBeExact: Bool) throws -> GIFPatch? {
            try GIFPatch(
                pixels,
                width: area.columns.count,
                shared: self.sharedColors,
                sharedPalette: sharedPalette,
                maximumColorCount: self.maximumColorCount,
                isDithered: self.options.isDithered,
                mustBeExact: mustBeExact
            )
        }
        let whole = picture.pixels(in: area)
        let changed = zip(whole, canvas.pixels(in: area)).map { $0 == $1 ? 0 : $0 }
        let exactChanges = try patch(changed, mustBeExact: true)
        // Leaving out what stays is not always shorter, and costs an entry of the palette.
        let hasGaps = changed.contains(0) && !whole.contains(0)
        let exactWhole = hasGaps ? try patch(whole, mustBeExact: true) : nil
        if let exactChanges, let exactWhole {
            return exactChanges.byteCount <= exactWhole.byteCount ? exactChanges : exactWhole
        }
        if let exact = exactChanges ?? exactWhole { return exact }
        guard let inexact = try patch(changed, mustBeExact: false) else {
            throw CodingError.notEncoded(.gif, "The picture can't be written as GIF: no palette was found.")
        }
        return inexact
    }

    private static func check(_ frames: [AnimationContent.Frame]) throws(CodingError) {
        guard let first = frames.first?.image else {
            throw CodingError(code: .invalidOptions, message: "An animation has at least one frame.", format: .gif)
        }
        let size = first.orientation.uprightSize(width: first.width, height: first.height)
        guard size.width <= Self.maximumSide, size.height <= Self.maximumSide else {
            throw .notEncoded(
                .gif,
                "A GIF has at most \(Self.maximumSide) pixels on a side; make the picture smaller."
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

    private mutating func writeStart(firstPalette: [UInt32]?, loopCount: Int) {
        // One more entry is for drawing nothing, where there is room.
        let shared = self.sharedColors.map { $0.colors.count < 256 ? $0.colors + [0] : $0.colors }
        let palette = shared ?? self.sharedPalette.map { $0 + [0] } ?? firstPalette ?? []
        self.bytes += Array("GIF89a".utf8)
        self.append(UInt16(clamping: self.width))
        self.append(UInt16(clamping: self.height))
        self.bytes += [0xF0 | UInt8(GIFPatch.tableBits(entryCount: palette.count)), 0, 0]
        self.append(palette)
        guard loopCount != 1 else { return }
        self.bytes += [0x21, 0xFF, 11] + Array("NETSCAPE2.0".utf8) + [3, 1]
        self.append(UInt16(clamping: loopCount))
        self.bytes.append(0)
    }

    private mutating func writeControl(_ milliseconds: Int, patch: GIFPatch, isCleared: Bool) {
        guard self.isAnimation || patch.transparentIndex != nil else { return }
        let disposal: UInt8 = isCleared ? 2 : self.isAnimation ? 1 : 0
        self.bytes += [0x21, 0xF9, 4, disposal << 2 | (patch.transparentIndex == nil ? 0 : 1)]
        // Shorter delays than 2/100 s are taken for mistakes.
        let hundredths = max(0, min(milliseconds, 1_000_000)) + 5
        self.append(self.isAnimation ? UInt16(clamping: max(2, hundredths / 10)) : 0)
        self.bytes += [patch.transparentIndex ?? 0, 0]
    }

    private mutating func writeImage(_ patch: GIFPatch, area: PixelArea, isFirst: Bool) {
        self.bytes.append(0x2C)
        for number in [area.columns.lowerBound, area.rows.lowerBound, area.columns.count, area.rows.count] {
            self.append(UInt16(clamping: number))
        }
        // Without shared colours the first frame's palette is that of the file.
        let isInStart = isFirst && self.sharedColors == nil && self.sharedPalette == nil
        if let palette = patch.palette, !isInStart {
            self.bytes.append(0x80 | UInt8(GIFPatch.tableBits(entryCount: palette.count)))
            self.append(palette)
        } else {
            self.bytes.append(0)
        }
        self.bytes += patch.data
    }

    private mutating func append(_ palette: [UInt32]) {
        self.bytes += palette.paletteBytes
        let missing = GIFPatch.tableSize(of: palette) - palette.count
        self.bytes += Array(repeating: 0, count: missing * 3)
    }

    private mutating func append(_ number: UInt16) {
        self.bytes += [UInt8(truncatingIfNeeded: number), UInt8(truncatingIfNeeded: number >> 8)]
    }
}
