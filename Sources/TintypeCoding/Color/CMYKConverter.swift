import CLCMS2
import FoundationEssentials
import Synchronization

/// Converts CMYK samples to sRGB by their ICC profile, through Little CMS.
///
/// Building one takes tens of milliseconds, so the last few are kept, by the profile's bytes.
/// Source: ICC.1, section 7.2.6 for the profile's colour space.
final class CMYKConverter: @unchecked Sendable {
    // Sound: the transform is never changed after `init`, and without Little CMS' own cache of
    // the last pixel (cmsFLAGS_NOCACHE) threads may use it at once.
    private let transform: cmsHTRANSFORM

    private struct Key: Hashable {
        let profile: Data
        let intent: ColorHandling.Intent
        let isInverted: Bool
    }

    private static let maximumCount = 8
    /// The last converters, the latest at the end.
    private static let recent = Mutex<[(key: Key, converter: CMYKConverter)]>([])

    /// The converter for a profile, or `nil` when it is broken or not of CMYK.
    ///
    /// - Parameter isInverted: Whether samples say how much light is left instead of how much ink there is.
    static func converter(profile: Data, intent: ColorHandling.Intent, isInverted: Bool) -> CMYKConverter? {
        let key = Key(profile: profile, intent: intent, isInverted: isInverted)
        if let known = Self.recent.withLock({ recent in recent.first { $0.key == key }?.converter }) { return known }
        // Built outside the lock; two threads may build the same one once.
        guard let converter = CMYKConverter(key) else { return nil }
        Self.recent.withLock { recent in
            if recent.count == Self.maximumCount { recent.removeFirst() }
            recent.append((key, converter))
        }
        return converter
    }

    private init?(_ key: Key) {
        let source = key.profile.withUnsafeBytes { bytes in
            cmsOpenProfileFromMem(bytes.baseAddress, UInt32(clamping: bytes.count))
        }
        guard let source else { return nil }
        defer { cmsCloseProfile(source) }
        guard cmsGetColorSpace(source) == cmsSigCmykData, let target = cmsCreate_sRGBProfile() else { return nil }
        defer { cmsCloseProfile(target) }
        // The macros TYPE_CMYK_8, TYPE_CMYK_8_REV and TYPE_RGB_8 of lcms2.h.
        let inks = UInt32(PT_CMYK) << 16 | 4 << 3 | 1 | (key.isInverted ? 1 << 13 : 0)
        let light = UInt32(PT_RGB) << 16 | 3 << 3 | 1
        let intent = key.intent == .perceptual ? INTENT_PERCEPTUAL : INTENT_RELATIVE_COLORIMETRIC
        let flags = UInt32(cmsFLAGS_NOCACHE)
        guard let transform = cmsCreateTransform(source, inks, target, light, UInt32(intent), flags) else { return nil }
        self.transform = transform
    }

    deinit {
        cmsDeleteTransform(self.transform)
    }

    /// Converts `count` pixels of four samples to three.
    func convert(_ inks: UnsafeRawBufferPointer, to pixels: UnsafeMutableRawBufferPointer, count: Int) {
        cmsDoTransform(self.transform, inks.baseAddress, pixels.baseAddress, UInt32(count))
    }
}
