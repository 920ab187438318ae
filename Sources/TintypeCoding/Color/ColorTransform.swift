import CLCMS2
import FoundationEssentials
import TintypeImage

/// One Little CMS transform to sRGB.
///
/// Sendable although unchecked: the handle is made without Little CMS's one-pixel cache
/// (`cmsFLAGS_NOCACHE`), and such a transform is only read by `cmsDoTransform`.
final class ColorTransform: @unchecked Sendable {
    private let handle: cmsHTRANSFORM

    /// Builds a transform, or `nil` where nothing is to be converted: the profile is broken, is of
    /// another colour model than the samples, or is sRGB.
    convenience init?(profile: Data, format: PixelFormat, intent: ColorHandling.Intent) {
        guard let source = LittleCMSProfile(profile), let target = LittleCMSProfile.sRGB(for: format) else {
            return nil
        }
        let model = format == .gray8 ? cmsSigGrayData : cmsSigRgbData
        guard cmsGetColorSpace(source.handle) == model else { return nil }
        self.init(from: source, to: target, type: Self.type(of: format), intent: intent)
        if self.isIdentity(channelCount: format.channelCount) { return nil }
    }

    private init?(
        from source: borrowing LittleCMSProfile,
        to target: borrowing LittleCMSProfile,
        type: UInt32,
        intent: ColorHandling.Intent
    ) {
        let lcmsIntent =
            switch intent {
            case .relativeColorimetric: UInt32(INTENT_RELATIVE_COLORIMETRIC)
            case .perceptual: UInt32(INTENT_PERCEPTUAL)
            }
        let flags = UInt32(cmsFLAGS_NOCACHE) | UInt32(cmsFLAGS_COPY_ALPHA)
        guard let handle = cmsCreateTransform(source.handle, type, target.handle, type, lcmsIntent, flags) else {
            return nil
        }
        self.handle = handle
    }

    deinit {
        cmsDeleteTransform(self.handle)
    }

    /// The converted samples.
    func apply(to pixels: PixelBuffer) throws -> PixelBuffer {
        let plane = pixels.layout.planes[0]
        // Some milliseconds, also with a profile of tables.
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

    private static func type(of format: PixelFormat) -> UInt32 {
        switch format {
        case .gray8: clcms_type_gray8
        case .rgb8: clcms_type_rgb8
        default: clcms_type_rgba8
        }
    }

    /// Whether samples change by no more than rounding does: most photographs carry a copy of
    /// sRGB, and converting them would only cost time.
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
