// SPDX-License-Identifier: Apache-2.0

import CTintypePixelKernels
public import TintypeImage

/// Makes edges stand out with an unsharp mask, which moves each pixel away from a blurred image.
///
/// By default the filter works on the luma of ITU-R BT.709 of the stored samples and moves the three colours by the
/// same distance, so that edges get no coloured fringes, as in libvips. ``Channels/all`` moves each colour separately,
/// as in Pillow and ImageMagick. Alpha does not change, and invisible colours do not count.
public struct Sharpen: Hashable, ImageTransformer {
    /// The channels that the filter moves.
    public enum Channels: String, Sendable, Hashable, Codable, CaseIterable {
        /// The three colours together, by their luma.
        case luma
        /// Each colour separately.
        case all
    }

    /// The standard deviation of the blur in pixels, 0 to 1,000: the width of the edges that stand out; under 0.2
    /// changes nothing.
    public var sigma: Double
    /// The factor of the distance to the blurred pixel, 0 to 100; 0 changes nothing.
    public var amount: Double
    /// The smallest distance, in levels from 0 to 255, that moves a pixel; smaller distances count as noise.
    public var threshold: Double
    /// The channels that the filter moves.
    public var channels: Channels

    /// Creates an unsharp mask, by default on the luma with sigma 1, amount 1 and threshold 0.
    ///
    /// ```swift
    /// let sharp = try Sharpen(sigma: 0.8, amount: 0.6, threshold: 4).transform(image)
    /// ```
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
                FilteredImage<Float>(
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

    /// Returns the blur, or `nil` if the transform changes nothing.
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

    /// Reads a description, in which every parameter has a default.
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
