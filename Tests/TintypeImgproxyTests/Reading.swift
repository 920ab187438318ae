// SPDX-License-Identifier: Apache-2.0

import Testing

@testable import TintypeImgproxy

/// A time on 1 January 2026, in seconds since 1970.
let testTime = 1_767_225_600

/// Returns settings with all kinds of sources and without signatures.
func openSettings(_ change: (inout AddressSettings) -> Void = { _ in }) -> AddressSettings {
    var settings = AddressSettings()
    settings.schemes = Set(SourceScheme.allCases)
    change(&settings)
    return settings
}

/// Returns a key and its salt of hexadecimal digits.
func signatureKeys(_ key: String, _ salt: String) throws -> [SignatureKeys] {
    [
        SignatureKeys(
            key: try #require(Hexadecimal.bytes(key.utf8)),
            salt: try #require(Hexadecimal.bytes(salt.utf8))
        )
    ]
}

/// Reads a URL with `settings`.
func read(_ target: String, _ settings: AddressSettings = openSettings()) throws -> ImageAddress {
    try AddressParser(settings).parse(target, now: testTime)
}

/// Reads the options of a URL, with the limits among them.
func readOptions(_ text: String, suffix: String = "") throws -> ProcessingOptions {
    let settings = openSettings { $0.allowsSecurityOptions = true }
    return try read("/_/\(text)/plain/local:///a.png\(suffix)", settings).options
}

/// Returns the refusal of a URL, or `nil` if it is accepted.
func refusal(_ target: String, _ settings: AddressSettings = openSettings()) throws -> AddressError? {
    let parser = try AddressParser(settings)
    do throws(AddressError) {
        _ = try parser.parse(target, now: testTime)
        return nil
    } catch {
        return error
    }
}
