// SPDX-License-Identifier: Apache-2.0

import FoundationEssentials
import Tintype
import TintypeTestSupport

/// A coder that holds each decode until a latch opens.
struct HeldCoder: ImageCoder {
    private struct HeldImage: EncodedImage {
        let base: any EncodedImage
        let latch: Latch

        var header: ImageHeader { self.base.header }

        func decode(options: DecodeOptions) throws -> DecodedImage {
            self.latch.wait()
            return try self.base.decode(options: options)
        }

        func metadata(limits: DecodingLimits) throws -> ImageMetadata { try self.base.metadata(limits: limits) }
    }

    private let base: any ImageCoder
    private let latch: Latch

    init(_ base: any ImageCoder, by latch: Latch) {
        self.base = base
        self.latch = latch
    }

    var decodableFormats: Set<ImageFormat> { self.base.decodableFormats }
    var encodableFormats: Set<ImageFormat> { self.base.encodableFormats }

    func open(_ data: Data, limits: DecodingLimits) throws -> any EncodedImage {
        HeldImage(base: try self.base.open(data, limits: limits), latch: self.latch)
    }

    func encode(_ image: Image, as format: ImageFormat, options: EncodeOptions) throws -> Data {
        try self.base.encode(image, as: format, options: options)
    }
}
