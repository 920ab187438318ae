// SPDX-License-Identifier: Apache-2.0

import FoundationEssentials
import Tintype

/// A coder that calls a test before it opens an image, and before it decodes one.
struct WatchedCoder: ImageCoder {
    private struct WatchedImage: EncodedImage {
        let base: any EncodedImage
        let willDecode: @Sendable () -> Void

        var header: ImageHeader { self.base.header }

        func decode(options: DecodeOptions) throws -> DecodedImage {
            self.willDecode()
            return try self.base.decode(options: options)
        }

        func metadata(limits: DecodingLimits) throws -> ImageMetadata { try self.base.metadata(limits: limits) }
    }

    private let base: any ImageCoder
    private let willOpen: @Sendable () -> Void
    private let willDecode: @Sendable () -> Void

    init(
        _ base: any ImageCoder,
        willOpen: @escaping @Sendable () -> Void = {},
        willDecode: @escaping @Sendable () -> Void
    ) {
        self.base = base
        self.willOpen = willOpen
        self.willDecode = willDecode
    }

    var decodableFormats: Set<ImageFormat> { self.base.decodableFormats }
    var encodableFormats: Set<ImageFormat> { self.base.encodableFormats }

    func open(_ data: Data, limits: DecodingLimits) throws -> any EncodedImage {
        self.willOpen()
        return WatchedImage(base: try self.base.open(data, limits: limits), willDecode: self.willDecode)
    }

    func encode(_ image: Image, as format: ImageFormat, options: EncodeOptions) throws -> Data {
        try self.base.encode(image, as: format, options: options)
    }
}
