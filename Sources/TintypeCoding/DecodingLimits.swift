// SPDX-License-Identifier: Apache-2.0

import FoundationEssentials
import TintypeImage

/// The limits on the cost of an image.
///
/// The decoder checks sizes against the header before it allocates pixel memory, and counts the work while it decodes.
public struct DecodingLimits: Sendable, Hashable {
    /// The most pixels, stored width times height; 100 million by default.
    public var maximumPixels: Int
    /// The most pixels of the longer side; 32,768 by default.
    public var maximumSide: Int
    /// The most encoded bytes; 64 MiB by default.
    public var maximumEncodedBytes: Int
    /// The most work of one decode, in pixels; 1,000 million by default, about five seconds of a server's core.
    ///
    /// Each computed pixel counts one, including pixels of frames that later frames cover. A scan of a progressive
    /// image counts a quarter for each sample that it covers, and each encoded byte counts five. A photograph of 24
    /// megapixels takes about 40 million. ``DecodeWork`` does the counting.
    ///
    /// The transforms of a request have a separate budget of the same size. Each pixel that a transform computes counts
    /// one.
    public var maximumWork: Int
    /// The most frames of an animation; 10,000 by default.
    public var maximumFrames: Int
    /// The most pixels of all frames of an animation together, each as large as the canvas; 500 million by default.
    ///
    /// If the file has a colour profile, each pixel counts three times, because each frame is converted to sRGB by
    /// itself.
    public var maximumAnimationPixels: Int

    /// Creates limits, by default the ones that the loader uses.
    ///
    /// ```swift
    /// var configuration = LoaderActor.Configuration()
    /// configuration.limits = DecodingLimits(maximumPixels: 40_000_000, maximumFrames: 500)
    /// ```
    public init(
        maximumPixels: Int = 100_000_000,
        maximumSide: Int = 32_768,
        maximumEncodedBytes: Int = 64 << 20,
        maximumWork: Int = 1_000_000_000,
        maximumFrames: Int = 10_000,
        maximumAnimationPixels: Int = 500_000_000
    ) {
        self.maximumPixels = maximumPixels
        self.maximumSide = maximumSide
        self.maximumEncodedBytes = maximumEncodedBytes
        self.maximumWork = maximumWork
        self.maximumFrames = maximumFrames
        self.maximumAnimationPixels = maximumAnimationPixels
    }

    /// Limits that refuse nothing.
    static let none = DecodingLimits(
        maximumPixels: .max,
        maximumSide: .max,
        maximumEncodedBytes: .max,
        maximumWork: .max,
        maximumFrames: .max,
        maximumAnimationPixels: .max
    )

    /// Refuses too many encoded bytes.
    func check(_ data: Data) throws(CodingError) {
        try self.check(encodedByteCount: data.count)
    }

    /// Refuses too many encoded bytes: all of the file's, or the ones that have arrived.
    func check(encodedByteCount count: Int) throws(CodingError) {
        guard count > self.maximumEncodedBytes else { return }
        let what = "The image has \(count) encoded bytes and the limit is \(self.maximumEncodedBytes)"
        throw .overLimit(.tooManyBytes, nil, what)
    }

    /// Refuses a header that declares too large an image, or too many frames.
    package func check(_ header: ImageHeader) throws(CodingError) {
        let side = max(header.pixelWidth, header.pixelHeight)
        let size = "The image is \(header.pixelWidth)x\(header.pixelHeight)"
        guard side <= self.maximumSide else {
            let what = "\(size) and a side may have \(self.maximumSide) pixels"
            throw .overLimit(.sideTooLong, header.format, what)
        }
        let pixels = header.pixelWidth.saturatingMultiplied(by: header.pixelHeight)
        guard pixels <= self.maximumPixels, pixels < .max else {
            let what = "\(size) and the limit is \(self.maximumPixels) pixels"
            throw .overLimit(.tooManyPixels, header.format, what)
        }
        guard !header.animation.durations.isEmpty else { return }
        let weight = header.colorProfile == nil ? 1 : 3
        try self.check(
            frameCount: header.animation.frameCount,
            animationPixels: pixels.saturatingMultiplied(by: header.animation.frameCount * weight),
            format: header.format
        )
    }

    /// Refuses too many frames, and too many pixels of frames together.
    ///
    /// The counts cover all frames or the ones found so far. Coders call this as their frame list grows, so that a
    /// flood of frames costs no memory.
    func check(frameCount: Int, animationPixels: Int = 0, format: ImageFormat) throws(CodingError) {
        guard frameCount <= self.maximumFrames else {
            let what = "The animation has \(frameCount) frames or more and the limit is \(self.maximumFrames)"
            throw .overLimit(.tooManyFrames, format, what)
        }
        guard animationPixels <= self.maximumAnimationPixels else {
            let what =
                "The \(frameCount) frames of the animation count as \(animationPixels) pixels together and the "
                + "limit is \(self.maximumAnimationPixels)"
            throw .overLimit(.animationTooLarge, format, what)
        }
    }
}

/// Sums and products of untrusted sizes, which become `Int.max` on overflow instead of trapping.
extension Int {
    /// Returns the product of two numbers that are not negative.
    package func saturatingMultiplied(by other: Int) -> Int {
        let (product, overflow) = self.multipliedReportingOverflow(by: other)
        return overflow ? .max : product
    }

    /// Returns the sum of two numbers that are not negative.
    package func saturatingAdded(to other: Int) -> Int {
        let (sum, overflow) = self.addingReportingOverflow(other)
        return overflow ? .max : sum
    }
}
