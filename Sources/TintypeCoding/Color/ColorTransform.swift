// SPDX-License-Identifier: Apache-2.0

#if LittleCMS
import CTintypeLCMS2
import FoundationEssentials
import TintypeImage

/// One Little CMS transform to sRGB.
///
/// Sendable although unchecked: the handle is made without Little CMS's one-pixel cache (`cmsFLAGS_NOCACHE`), and
/// `cmsDoTransform` only reads such a transform.
final class ColorTransform: @unchecked Sendable {
    /// The source and target of a conversion.
    enum Samples: Hashable {
        /// Pixels, converted to pixels of the same format.
        case pixels(PixelFormat)
        /// Four samples that say how much light each ink leaves, converted to red, green and blue.
        case inks
    }

    private let handle: cmsHTRANSFORM

    /// Builds a transform, or returns `nil` if no conversion is needed or possible.
    ///
    /// The profile may be broken, may have another colour model than the samples, or may be sRGB.
    init?(profile: Data, of samples: Samples, intent: ColorHandling.Intent) {
        let (format, model, types) = Self.types(of: samples)
        guard let source = LittleCMSProfile(profile), let target = LittleCMSProfile.sRGB(for: format),
            cmsGetColorSpace(source.handle) == model
        else { return nil }
        let lcmsIntent =
            switch intent {
            case .relativeColorimetric: UInt32(INTENT_RELATIVE_COLORIMETRIC)
            case .perceptual: UInt32(INTENT_PERCEPTUAL)
            }
        let flags = UInt32(cmsFLAGS_NOCACHE) | UInt32(cmsFLAGS_COPY_ALPHA)
        let handle = cmsCreateTransform(source.handle, types.source, target.handle, types.target, lcmsIntent, flags)
        guard let handle else { return nil }
        self.handle = handle
        if samples != .inks, self.isIdentity(channelCount: format.channelCount) { return nil }
    }

    deinit {
        cmsDeleteTransform(self.handle)
    }

    /// Returns the converted samples.
    func apply(to pixels: PixelBuffer) throws -> PixelBuffer {
        let plane = pixels.layout.planes[0]
        // Each strip takes some milliseconds, even with a profile of tables.
        let strip = max(1, DecodeWork.rowsAtOnce(ofWidth: plane.width) / 8)
        return try PixelBuffer(
            pixels.layout,
            fillingUnsafely: { target in
                try pixels.withUnsafeBytes { source in
                    for row in stride(from: 0, to: plane.height, by: strip) {
                        try Task.checkCancellation()
                        cmsDoTransformLineStride(
                            self.handle,
                            source.baseAddress.map { $0 + row * plane.bytesPerRow },
                            target.baseAddress.map { $0 + row * plane.bytesPerRow },
                            UInt32(plane.width),
                            UInt32(min(strip, plane.height - row)),
                            UInt32(plane.bytesPerRow),
                            UInt32(plane.bytesPerRow),
                            0,
                            0
                        )
                    }
                }
            }
        )
    }

    /// Converts `count` pixels of four inks to three samples each.
    func convert(_ inks: UnsafeRawBufferPointer, to pixels: UnsafeMutableRawBufferPointer, count: Int) {
        precondition(inks.count >= count * 4 && pixels.count >= count * 3, "The row does not fit.")
        cmsDoTransform(self.handle, inks.baseAddress, pixels.baseAddress, UInt32(count))
    }

    /// Returns the format of the converted samples, the colour model of their profile, and their Little CMS types.
    private static func types(
        of samples: Samples
    ) -> (format: PixelFormat, model: cmsColorSpaceSignature, types: (source: UInt32, target: UInt32)) {
        switch samples {
        case .inks: (.rgb8, cmsSigCmykData, (clcms_type_cmyk8_inverted, clcms_type_rgb8))
        case .pixels(.gray8): (.gray8, cmsSigGrayData, (clcms_type_gray8, clcms_type_gray8))
        case .pixels(.rgb8): (.rgb8, cmsSigRgbData, (clcms_type_rgb8, clcms_type_rgb8))
        case .pixels(let format): (format, cmsSigRgbData, (clcms_type_rgba8, clcms_type_rgba8))
        }
    }

    /// Returns whether the transform changes samples by no more than rounding does.
    ///
    /// Most photographs carry a copy of sRGB. Converting them would only cost time.
    private func isIdentity(channelCount: Int) -> Bool {
        let levels = stride(from: 0, through: 255, by: 15).map { UInt8($0) }
        var probes: [UInt8] = []
        for red in levels {
            guard channelCount > 1 else {
                probes.append(red)
                continue
            }
            for green in levels {
                for blue in levels { probes += [red, green, blue] + (channelCount == 4 ? [255] : []) }
            }
        }
        var results = [UInt8](repeating: 0, count: probes.count)
        cmsDoTransform(self.handle, probes, &results, UInt32(probes.count / channelCount))
        return zip(probes, results).allSatisfy { abs(Int($0) - Int($1)) <= 1 }
    }
}
#endif
