import CLCMS2
import FoundationEssentials

extension ImageHeader {
    /// The name that the embedded profile gives itself, or `nil` when there is none or it is broken.
    ///
    /// Source: ICC.1, section 9.2.41, `profileDescriptionTag`; read through Little CMS.
    public var colorProfileDescription: String? {
        guard let profile = self.colorProfile else { return nil }
        return profile.withUnsafeBytes { bytes in
            guard let handle = cmsOpenProfileFromMem(bytes.baseAddress, UInt32(clamping: bytes.count)) else {
                return nil
            }
            defer { cmsCloseProfile(handle) }
            let count = cmsGetProfileInfoASCII(handle, cmsInfoDescription, "en", "US", nil, 0)
            guard count > 1 else { return nil }
            var text = [CChar](repeating: 0, count: Int(count))
            cmsGetProfileInfoASCII(handle, cmsInfoDescription, "en", "US", &text, count)
            return String(decoding: text.prefix { $0 != 0 }.map { UInt8(bitPattern: $0) }, as: UTF8.self)
        }
    }
}
