// SPDX-License-Identifier: Apache-2.0

import Tintype
import TintypeImgproxy

/// Plans the routes of URLs by the rules of a configuration.
///
/// It is a class, because each request would otherwise copy its values and count their references.
final class RoutePlanner: Sendable {
    /// A URL that the server does not answer with an image.
    struct Refusal: Error, Sendable {
        let status: Int
        /// The stable name of the reason.
        let code: String
        /// The text for the client.
        let publicText: String
        /// The text for the log, and for the client if ``ImageServer/Configuration/explainsErrors`` is true.
        let message: String

        init(_ error: AddressError) {
            self.status = error.status
            self.code = "\(error.reason)"
            self.publicText = error.publicText
            self.message = error.message
        }

        init(status: Int, code: String, publicText: String, message: String) {
            self.status = status
            self.code = code
            self.publicText = publicText
            self.message = message
        }
    }

    private let parser: AddressParser
    private let sources: SourceFetchers
    private let images: ImageServer.Configuration.Images
    private let limits: DecodingLimits
    private let watermark: Image?

    init(
        parser: AddressParser,
        sources: SourceFetchers,
        images: ImageServer.Configuration.Images,
        limits: DecodingLimits,
        watermark: Image?
    ) {
        self.parser = parser
        self.sources = sources
        self.images = images
        self.limits = limits
        self.watermark = watermark
    }

    /// Whether answers depend on the `Accept` field of requests.
    var readsAccept: Bool { self.images.readsAccept }

    /// The signer for URLs; `nil` if there are no keys.
    var signer: URLSigner? { self.parser.settings.signer }

    /// Returns the route of a target.
    ///
    /// - Parameters:
    ///   - target: The target of the request.
    ///   - acceptsWebP: Whether the client names WebP as acceptable.
    ///   - now: The seconds since 1970.
    ///   - purges: The purges so far, which give purged sources new cache keys.
    /// - Returns: The route.
    /// - Throws: ``Refusal``.
    func route(
        for target: String,
        acceptsWebP: Bool,
        now: Int,
        purges: PurgeList
    ) throws(Refusal) -> ImageRoute {
        let address: ImageAddress
        do {
            address = try self.parser.parse(target, now: now)
        } catch {
            throw Refusal(error)
        }
        return try self.route(for: address, acceptsWebP: acceptsWebP, purges: purges)
    }

    /// Returns the route of an address.
    func route(for address: ImageAddress, acceptsWebP: Bool, purges: PurgeList) throws(Refusal) -> ImageRoute {
        let options = address.options
        var request: ImageRequest
        do {
            request = try self.sources.request(for: address)
        } catch {
            throw Refusal(status: 404, code: "invalidSource", publicText: "Invalid source URL", message: error.message)
        }
        // The cache key replaces the URL, so it must contain the version of an object.
        request.source.cacheKey = purges.cacheKey(of: address.source).map { key in
            address.objectVersion.map { "\(key)\n\($0)" } ?? key
        }
        request.caching.originals = .disk
        request.caching.variants = .none
        self.setLimits(options.limits, of: &request)
        let origin = Self.origin(of: address)
        guard !options.isRaw else {
            return ImageRoute(address: address, work: .raw(request), varies: false, origin: origin)
        }
        try self.checkOptions(options)
        request.transforms = self.transforms(options)
        let (encoding, varies) = try self.encoding(options, acceptsWebP: acceptsWebP)
        let skipped = self.skippedFormats(options)
        let work: ImageRoute.Work =
            skipped.isEmpty ? .encode(request, encoding) : .skip(skipped, request, encoding)
        return ImageRoute(address: address, work: work, varies: varies, origin: origin)
    }

    // MARK: Parts

    private func setLimits(_ limits: SecurityLimits, of request: inout ImageRequest) {
        if let count = limits.sourceByteCount { request.transport.bodyLimit = count > 0 ? count : .max }
        guard limits.sourcePixelCount != nil || limits.framePixelCount > 0 else { return }
        var decoding = self.limits
        if let count = limits.sourcePixelCount {
            decoding.maximumPixels = count
            decoding.maximumAnimationPixels = count
        }
        if limits.framePixelCount > 0 { decoding.maximumPixels = limits.framePixelCount }
        if self.images.maximumFrames == 1 { decoding.maximumAnimationPixels = .max }
        request.transport.decodingLimits = decoding
    }

    /// Refuses options that the server does not support, before the source is loaded.
    private func checkOptions(_ options: ProcessingOptions) throws(Refusal) {
        guard options.autoRotates else {
            throw Refusal(
                status: 422,
                code: "unsupportedOption",
                publicText: "Invalid URL",
                message: "auto_rotate:0 is not supported: images are always upright."
            )
        }
    }

    private func transforms(_ options: ProcessingOptions) -> TransformPipeline {
        var transforms: [ImageTransform] = []
        if let trim = options.trim {
            transforms.append(
                .trim(
                    Trim(
                        color: trim.color.map(Color.init),
                        tolerance: UInt8(min(255, max(0, trim.threshold.rounded()))),
                        isEvenHorizontally: trim.isEqualHorizontally,
                        isEvenVertically: trim.isEqualVertically
                    )
                )
            )
        }
        transforms.append(
            .custom(
                ImgproxyRendering(
                    options: options,
                    watermark: options.watermark == nil ? nil : self.watermark,
                    watermarkOpacity: self.images.watermarkOpacity,
                    light: self.images.usesLinearLight ? .linear : .sRGB
                )
            )
        )
        return TransformPipeline(transforms)
    }

    /// Returns the encoding, and whether it depends on the `Accept` field.
    private func encoding(
        _ options: ProcessingOptions,
        acceptsWebP: Bool
    ) throws(Refusal) -> (OutputEncoding, varies: Bool) {
        // Borders differ from frame to frame, so a trimmed animation becomes its first frame.
        let isAnimated = self.images.maximumFrames > 1 && options.trim == nil
        let frames = max(1, isAnimated ? options.limits.frameCount : 1)
        let varies = self.images.enforcesWebP || self.images.prefersWebP && options.format == nil
        if varies, acceptsWebP { return (self.encoding(.webp, options, frames), true) }
        guard let name = options.format else {
            let encodings = self.images.preferredFormats.map { self.encoding($0, options, frames) }
            return (.automatic(among: encodings, frameLimit: frames), varies)
        }
        guard let format = ImageFormat(name) else {
            throw Refusal(
                status: 422,
                code: "unsupportedFormat",
                publicText: "Invalid URL",
                message: "The format \(name.rawValue) cannot be written; jpg, png, gif and webp can."
            )
        }
        return (self.encoding(format, options, frames), varies)
    }

    private func encoding(_ format: ImageFormat, _ options: ProcessingOptions, _ frames: Int) -> OutputEncoding {
        let ofFormat = FormatName(format).flatMap { options.formatQuality[$0] }
        let quality = options.quality > 0 ? options.quality : ofFormat ?? self.images.qualities[format]
        var encode = EncodeOptions(quality: quality ?? self.images.quality)
        encode.background = options.background.map(Color.init) ?? .white
        // All options are part of the cache key, so a setting for one format must not change the keys of others.
        switch format {
        case .jpeg: encode.isProgressive = self.images.isProgressive
        case .png: encode.pngLevel = self.images.pngLevel
        case .webp: encode.webpEffort = self.images.webpEffort
        default: break
        }
        if options.maximumByteCount > 0, format == .jpeg || format == .webp {
            encode.maximumByteCount = options.maximumByteCount
            encode.requiresMaximumByteCount = false
        }
        return OutputEncoding(format, options: encode, frameLimit: frames)
    }

    /// The formats of sources that are sent as they are, if the URL names no other format.
    private func skippedFormats(_ options: ProcessingOptions) -> Set<ImageFormat> {
        let all = self.images.skippedFormats.union(options.skippedFormats.compactMap { ImageFormat($0) })
        guard let name = options.format else { return all }
        return ImageFormat(name).map { all.intersection([$0]) } ?? []
    }

    /// Returns the URL of the source before its path.
    private static func origin(of address: ImageAddress) -> String {
        let source = address.source.utf8
        let rest = source.dropFirst(address.scheme.rawValue.utf8.count + "://".utf8.count)
        return String(address.source[..<(rest.firstIndex(of: UInt8(ascii: "/")) ?? source.endIndex)])
    }
}

extension Color {
    init(_ color: ColorOption) {
        self.init(red: color.red, green: color.green, blue: color.blue)
    }
}

extension ImageFormat {
    /// The format with this name in URLs, if the server can write it.
    init?(_ name: FormatName) {
        switch name {
        case .jpeg: self = .jpeg
        case .png: self = .png
        case .gif: self = .gif
        case .webp: self = .webp
        default: return nil
        }
    }
}

extension FormatName {
    /// The name of a format in URLs.
    init?(_ format: ImageFormat) {
        switch format {
        case .jpeg: self = .jpeg
        case .png: self = .png
        case .gif: self = .gif
        case .webp: self = .webp
        default: return nil
        }
    }
}
