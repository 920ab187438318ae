import CPixelKernels
public import TintypeImage

/// Makes edges stand out: an unsharp mask, which moves every pixel away from a blurred image.
///
/// By default only the luma moves (of ITU-R BT.709, on the stored samples), and with it all three colours alike, so that
/// edges get no coloured fringes: as libvips does it. ``Channels/all`` moves each colour by itself, as Pillow and
/// ImageMagick do. Alpha stays, and colours that can't be seen do not count.
public struct Sharpen: Hashable, ImageTransformer {
    /// What is moved.
    public enum Channels: String, Sendable, Hashable, Codable, CaseIterable {
        /// The three colours together, by their luma.
        case luma
        /// Each colour by itself.
        case all
    }

    /// The standard deviation of the blur in pixels, 0 to 1,000: how wide what stands out is.
    public var sigma: Double
    /// How far a pixel moves away, times its distance to the blurred one: 0 changes nothing, at most 100.
    public var amount: Double
    /// The distance from which on a pixel moves, in levels from 0 to 255: what is under it counts as noise.
    public var threshold: Double
    /// What is moved.
    public var channels: Channels

    /// Describes an unsharp mask.
    public init(sigma: Double = 1, amount: Double = 1, threshold: Double = 0, channels: Channels = .luma) {
        self.sigma = sigma
        self.amount = amount
        self.threshold = threshold
        self.channels = channels
    }

    public var key: String {
        "sharpen(\(self.sigma),\(self.amount),\(self.threshold),\(self.channels.rawValue))"
    }

    public func footprint(for source: PixelLayout) throws -> TransformFootprint {
        guard let filter = try self.filter() else { return TransformFootprint(result: source) }
        let working = filter.workingByteCount(width: source.width, channels: self.numbersPerPixel(source.format))
        return TransformFootprint(result: source, workingByteCount: working)
    }

    public func transform(_ image: Image) throws -> Image {
        guard let filter = try self.filter() else { return image }
        let format = image.pixels.format
        let channels = format.channelCount
        let (amount, threshold) = (Float(self.amount), Float(self.threshold))
        let isByLuma = self.channels == .luma && format != .gray8
        return try image.filtered { rows in
            try filter.run(
                FilteredPicture<Float>(
                    width: image.width,
                    height: image.height,
                    channels: self.numbersPerPixel(format),
                    load: { row, columns, numbers in
                        let samples = rows.source(row, columns.lowerBound)
                        if isByLuma {
                            cpixels_load_luma(samples, channels, numbers, columns.count)
                        } else {
                            cpixels_load_samples(samples, channels, nil, numbers, columns.count)
                        }
                    },
                    emit: { row, columns, blurred in
                        let sharpen = isByLuma ? cpixels_sharpen_luma : cpixels_sharpen_samples
                        let samples = rows.source(row, columns.lowerBound)
                        let target = rows.target(row, columns.lowerBound)
                        sharpen(samples, blurred, channels, amount, threshold, target, columns.count)
                    }
                )
            )
        }
    }

    /// The blur, or `nil` where nothing changes.
    private func filter() throws(TransformError) -> GaussianFilter? {
        try TransformError.check(self.sigma, in: 0...GaussianFilter.largestSigma, "The sigma of an unsharp mask")
        try TransformError.check(self.amount, in: 0...100, "The amount of an unsharp mask")
        try TransformError.check(self.threshold, in: 0...255, "The threshold of an unsharp mask")
        guard self.amount > 0, self.sigma >= GaussianFilter.smallestSigma else { return nil }
        return GaussianFilter(sigma: self.sigma)
    }

    private func numbersPerPixel(_ format: PixelFormat) -> Int {
        guard self.channels == .luma else { return format.channelCount }
        return format.hasAlpha ? 2 : 1
    }
}

extension Sharpen: Codable {
    private enum CodingKeys: CodingKey {
        case sigma, amount, threshold, channels
    }

    /// Reads a description; what is left out has its default.
    public init(from decoder: any Decoder) throws {
        let container = try decoder.container(onlyOf: CodingKeys.self)
        self.init(
            sigma: try container.decodeIfPresent(Double.self, forKey: .sigma) ?? 1,
            amount: try container.decodeIfPresent(Double.self, forKey: .amount) ?? 1,
            threshold: try container.decodeIfPresent(Double.self, forKey: .threshold) ?? 0,
            channels: try container.decodeIfPresent(Channels.self, forKey: .channels) ?? .luma
        )
    }
}
