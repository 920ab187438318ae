// SPDX-License-Identifier: Apache-2.0

public import TintypeImage

/// One frame of an animation as stored, before it is composited on the canvas.
public struct AnimationFrame: Sendable, Hashable {
    /// How the frame's area of the canvas changes after the frame was shown.
    public enum Disposal: Sendable, Hashable {
        /// The area stays as it is.
        case keep
        /// The area becomes transparent.
        case background
        /// The area becomes what it was before the frame was drawn.
        case previous
    }

    /// How the frame's pixels are combined with the canvas.
    public enum Blend: Sendable, Hashable {
        /// The frame's pixels replace the canvas, including its transparent pixels.
        case source
        /// The frame's pixels are blended over the canvas.
        case over
    }

    /// The column of the canvas where the frame begins.
    public var left: Int
    /// The row of the canvas where the frame begins.
    public var top: Int
    /// The width of the frame in pixels.
    public var width: Int
    /// The height of the frame in pixels.
    public var height: Int
    /// How the frame's area changes after the frame was shown.
    public var disposal: Disposal
    /// How the frame is combined with the canvas.
    public var blend: Blend
    /// Whether any pixel of the frame may be transparent.
    public var hasAlpha: Bool

    /// Creates a frame, by default one that may be transparent, is blended over the canvas, and stays.
    ///
    /// ```swift
    /// let frame = AnimationFrame(left: 0, top: 0, width: 320, height: 240, disposal: .background)
    /// ```
    public init(
        left: Int,
        top: Int,
        width: Int,
        height: Int,
        disposal: Disposal = .keep,
        blend: Blend = .over,
        hasAlpha: Bool = true
    ) {
        self.left = left
        self.top = top
        self.width = width
        self.height = height
        self.disposal = disposal
        self.blend = blend
        self.hasAlpha = hasAlpha
    }

    /// Returns whether the area of `other` lies within that of this frame.
    func covers(_ other: AnimationFrame) -> Bool {
        self.left <= other.left && self.top <= other.top
            && self.left.saturatingAdded(to: self.width) >= other.left + other.width
            && self.top.saturatingAdded(to: self.height) >= other.top + other.height
    }

    /// Returns whether the whole canvas lies within the area of the frame.
    func covers(_ canvas: PixelSize) -> Bool {
        self.covers(AnimationFrame(left: 0, top: 0, width: canvas.width, height: canvas.height))
    }
}

/// Reads the frames of one animation, each by itself; `FrameCompositor` composites them for all formats alike.
///
/// Use it on one lane at a time. Opening a reader parses the frame list and decodes no pixels.
///
/// ```swift
/// if let reader = try ImageDecoder(data, registry: CoderRegistry()).frameReader() {
///     for index in reader.frames.indices { print(try reader.pixels(of: index).byteCount) }
/// }
/// ```
public protocol FrameReader: Sendable {
    /// The size of the canvas.
    var canvas: PixelSize { get }
    /// The frames in their order.
    ///
    /// A frame may extend beyond the canvas; the compositor crops it.
    var frames: [AnimationFrame] { get }

    /// Returns the pixels of a frame's own area as `rgba8`, with the width and height of the frame.
    ///
    /// - Throws: `CodingError`, `CancellationError`.
    func pixels(of index: Int) throws -> PixelBuffer

    /// Returns the pixels of a frame, and counts the work of decoding them.
    ///
    /// By default it counts the pixels of the frame.
    ///
    /// - Throws: `CodingError`, `CancellationError`.
    func pixels(of index: Int, work: DecodeWork) throws -> PixelBuffer
}

extension FrameReader {
    public func pixels(of index: Int, work: DecodeWork) throws -> PixelBuffer {
        if self.frames.indices.contains(index) {
            let frame = self.frames[index]
            try work.count(max(0, frame.width).saturatingMultiplied(by: max(0, frame.height)))
        }
        return try self.pixels(of: index)
    }
}
