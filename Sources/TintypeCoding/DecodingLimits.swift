import FoundationEssentials
import TintypeImage

/// What an image may cost: its size, checked from its header before any pixel memory exists, and the work of
/// decoding it, counted while it is done.
public struct DecodingLimits: Sendable, Hashable {
    /// Pixels, stored width times height; default 100 million.
    public var maximumPixels: Int
    /// The longer side in pixels; default 32,768.
    public var maximumSide: Int
    /// Encoded bytes; default 64 MiB.
    public var maximumEncodedBytes: Int
    /// The work of one decode, in pixels; default 1,000 million, about five seconds of a server's core.
    ///
    /// Each pixel that is computed counts one, those of frames that are only drawn over as well; a scan of a
    /// progressive image counts a quarter for each sample that it covers, and each encoded byte five. A photograph of
    /// 24 megapixels takes about 40 million. ``DecodeWork`` counts.
    ///
    /// The transforms of a request have a budget of their own that is as large: each pixel that one of them makes counts
    /// one.
    public var maximumWork: Int
    /// The frames of an animation; default 10,000.
    public var maximumFrames: Int
    /// The pixels of all frames of an animation together, each as large as the canvas; default 500 million.
    ///
    /// Where the file has a colour profile they count three times: each frame is brought to sRGB by itself.
    public var maximumAnimationPixels: Int

    /// Limits, by default those that the loader uses.
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

    /// Nothing is refused.
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

    /// Refuses too many encoded bytes, all of them or those that have arrived.
    func check(encodedByteCount count: Int) throws(CodingError) {
        guard count > self.maximumEncodedBytes else { return }
        let what = "The picture has \(count) encoded bytes and the limit is \(self.maximumEncodedBytes)"
        throw .overLimit(.tooManyBytes, nil, what)
    }

    /// Refuses a header that declares too large an image, or too many frames.
    package func check(_ header: ImageHeader) throws(CodingError) {
        let side = max(header.pixelWidth, header.pixelHeight)
        let size = "The picture is \(header.pixelWidth)x\(header.pixelHeight)"
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

    /// Refuses too many frames, all of them or those that were found so far, and too many pixels of them together.
    ///
    /// What holds a frame list asks as it grows, so that a flood of frames costs no memory.
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

/// Sums and products of sizes that strangers choose: too large is `Int.max`, never a trap.
extension Int {
    /// The product of two numbers that are not negative.
    package func saturatingMultiplied(by other: Int) -> Int {
        let (product, overflow) = self.multipliedReportingOverflow(by: other)
        return overflow ? .max : product
    }

    /// The sum of two numbers that are not negative.
    package func saturatingAdded(to other: Int) -> Int {
        let (sum, overflow) = self.addingReportingOverflow(other)
        return overflow ? .max : sum
    }
}
