// SPDX-License-Identifier: Apache-2.0

#if LittleCMS
import CTintypeLCMS2
import FoundationEssentials
import TintypeImage

/// An open profile, which is closed when the value is destroyed.
struct LittleCMSProfile: ~Copyable {
    let handle: cmsHPROFILE

    /// Opens an embedded profile; `nil` if it is broken.
    init?(_ data: Data) {
        let data = Self.withoutPipelines(data)
        // Little CMS copies the bytes.
        let handle = data.withUnsafeBytes { cmsOpenProfileFromMem($0.baseAddress, UInt32(clamping: $0.count)) }
        guard let handle else { return nil }
        self.handle = handle
    }

    /// Returns the profile with its floating-point pipelines renamed, so that Little CMS ignores them.
    ///
    /// A floating-point pipeline can have any number of stages in a few bytes, because all of them may be the same one. It takes
    /// precedence over the tables that a profile must have as well. An image of 700 bytes could take minutes.
    ///
    /// Source: ICC.1:2022, 7.3.1, 9.2.19 to 9.2.26 (BToD and DToB tags) and 10.16 (multiProcessElementsType).
    private static func withoutPipelines(_ data: Data) -> Data {
        guard let count = data.uint32(at: 128) else { return data }
        var result = data
        for index in 0..<min(count, Self.maximumTagCount) {
            let offset = 132 + index * 12
            guard data.has("D2B", at: offset) || data.has("B2D", at: offset) else { continue }
            result.replaceSubrange(result.startIndex + offset..<result.startIndex + offset + 3, with: Data("xxx".utf8))
        }
        return result
    }

    /// The number of tags that Little CMS reads.
    private static let maximumTagCount = 100

    private init(handle: cmsHPROFILE) {
        self.handle = handle
    }

    deinit {
        cmsCloseProfile(self.handle)
    }

    /// Returns whether an embedded profile is for samples of a format; `false` if it is broken.
    static func matches(_ data: Data, _ format: PixelFormat) -> Bool {
        guard let profile = LittleCMSProfile(data) else { return false }
        return cmsGetColorSpace(profile.handle) == (format == .gray8 ? cmsSigGrayData : cmsSigRgbData)
    }

    /// Whether the profile is for red, green and blue.
    var isRGB: Bool { cmsGetColorSpace(self.handle) == cmsSigRgbData }

    /// Returns sRGB for samples of a format; for gray ones its white and its tone curve (IEC 61966-2-1).
    static func sRGB(for format: PixelFormat) -> LittleCMSProfile? {
        guard format == .gray8 else { return cmsCreate_sRGBProfile().map { LittleCMSProfile(handle: $0) } }
        // The parametric curve of type 4: gamma, a, b, c, d.
        guard let curve = cmsBuildParametricToneCurve(nil, 4, [2.4, 1 / 1.055, 0.055 / 1.055, 1 / 12.92, 0.04045])
        else {
            return nil
        }
        defer { cmsFreeToneCurve(curve) }
        return cmsCreateGrayProfile(cmsD50_xyY(), curve).map { LittleCMSProfile(handle: $0) }
    }
}

extension ImageHeader {
    /// The name that the embedded profile gives itself, or `nil` if it is missing or broken.
    ///
    /// Source: ICC.1, section 9.2.41, `profileDescriptionTag`; read through Little CMS.
    public var colorProfileDescription: String? {
        guard let data = self.colorProfile, let profile = LittleCMSProfile(data) else { return nil }
        let count = cmsGetProfileInfoASCII(profile.handle, cmsInfoDescription, "en", "US", nil, 0)
        guard count > 1 else { return nil }
        var text = [CChar](repeating: 0, count: Int(count))
        cmsGetProfileInfoASCII(profile.handle, cmsInfoDescription, "en", "US", &text, count)
        return String(decoding: text.prefix { $0 != 0 }.map { UInt8(bitPattern: $0) }, as: UTF8.self)
    }
}
#endif
