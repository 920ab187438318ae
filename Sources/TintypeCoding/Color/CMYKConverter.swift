import CLCMS2
import FoundationEssentials
import TintypeConcurrency
import TintypeImage

/// Converts rows of CMYK samples to sRGB by their ICC profile, through Little CMS.
///
/// The samples say how much light is left, not how much ink there is.
///
/// Building one takes tens of milliseconds, so the last few are kept, by the profile's bytes.
/// Sendable although unchecked: the handle is made without Little CMS's one-pixel cache
/// (`cmsFLAGS_NOCACHE`), and such a transform is only read by `cmsDoTransform`.
final class CMYKConverter: @unchecked Sendable {
    private let handle: cmsHTRANSFORM

    private struct Key: Hashable {
        /// The bytes; an array, which a leak checker can follow from a static value.
        let profile: [UInt8]
        let intent: ColorHandling.Intent
    }

    private static let maximumCount = 8
    /// The last converters, the last used last.
    private static let recent = Locked<[(key: Key, converter: CMYKConverter)]>([])

    /// The converter for a profile, or `nil` when it is broken or not of CMYK.
    static func converter(profile: Data, intent: ColorHandling.Intent) -> CMYKConverter? {
        let key = Key(profile: Array(profile), intent: intent)
        if let known = Self.recent.withLock({ recent in recent.first { $0.key == key }?.converter }) { return known }
        // Built outside the lock; two lanes may build the same one, and the later one is kept.
        guard let converter = CMYKConverter(key) else { return nil }
        Self.recent.withLock { recent in
            recent.removeAll { $0.key == key }
            if recent.count >= Self.maximumCount { recent.removeFirst() }
            recent.append((key, converter))
        }
        return converter
    }

    private init?(_ key: Key) {
        guard let source = LittleCMSProfile(Data(key.profile)), let target = LittleCMSProfile.sRGB(for: .rgb8) else {
            return nil
        }
        guard cmsGetColorSpace(source.handle) == cmsSigCmykData else { return nil }
        let intent =
            switch key.intent {
            case .relativeColorimetric: UInt32(INTENT_RELATIVE_COLORIMETRIC)
            case .perceptual: UInt32(INTENT_PERCEPTUAL)
            }
        let flags = UInt32(cmsFLAGS_NOCACHE)
        guard
            let handle = cmsCreateTransform(
                source.handle,
                clcms_type_cmyk8_inverted,
                target.handle,
                clcms_type_rgb8,
                intent,
                flags
            )
        else { return nil }
        self.handle = handle
    }

    deinit {
        cmsDeleteTransform(self.handle)
    }

    /// Converts `count` pixels of four samples to three.
    func convert(_ inks: UnsafeRawBufferPointer, to pixels: UnsafeMutableRawBufferPointer, count: Int) {
        precondition(inks.count >= count * 4 && pixels.count >= count * 3, "The row does not fit.")
        cmsDoTransform(self.handle, inks.baseAddress, pixels.baseAddress, UInt32(count))
    }
}
