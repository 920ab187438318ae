import FoundationEssentials
import TintypeImage

/// What a picture may cost, checked from its header before any pixel memory exists.
public struct DecodingLimits: Sendable, Hashable {
    /// Pixels, stored width times height; default 100 million.
    public var maximumPixels: Int
    /// The longer side in pixels; default 32,768.
    public var maximumSide: Int
    /// Encoded bytes; default 64 MiB.
    public var maximumEncodedBytes: Int

    /// Limits, by default those that the loader uses.
    public init(
        maximumPixels: Int = 100_000_000,
        maximumSide: Int = 32_768,
        maximumEncodedBytes: Int = 64 << 20
    ) {
        self.maximumPixels = maximumPixels
        self.maximumSide = maximumSide
        self.maximumEncodedBytes = maximumEncodedBytes
    }

    /// Refuses too many encoded bytes.
    func check(_ data: Data) throws(CodingError) {
        try self.check(encodedByteCount: data.count)
    }

    /// Refuses too many encoded bytes, all of them or those that have arrived.
    func check(encodedByteCount count: Int) throws(CodingError) {
        guard count > self.maximumEncodedBytes else { return }
        throw CodingError(
            code: .tooManyBytes,
            message: "The picture has \(count) encoded bytes and the limit is \(self.maximumEncodedBytes); "
                + "raise maximumEncodedBytes if you trust the source."
        )
    }

    /// Refuses a header that declares too large a picture.
    func check(_ header: ImageHeader) throws(CodingError) {
        let side = max(header.pixelWidth, header.pixelHeight)
        guard side <= self.maximumSide else {
            throw CodingError(
                code: .sideTooLong,
                message: "The picture is \(header.pixelWidth)x\(header.pixelHeight) and a side may have "
                    + "\(self.maximumSide) pixels; raise maximumSide if you trust the source.",
                format: header.format
            )
        }
        let (pixels, overflow) = header.pixelWidth.multipliedReportingOverflow(by: header.pixelHeight)
        guard !overflow, pixels <= self.maximumPixels else {
            throw CodingError(
                code: .tooManyPixels,
                message: "The picture is \(header.pixelWidth)x\(header.pixelHeight) and the limit is "
                    + "\(self.maximumPixels) pixels; raise maximumPixels if you trust the source.",
                format: header.format
            )
        }
    }
}
