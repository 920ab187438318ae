// SPDX-License-Identifier: Apache-2.0

import FoundationEssentials
import TintypeImage
import TintypeImgproxy

/// Reads a URL under several settings, and computes the geometry of its options for sources of several sizes.
///
/// The bytes are the URL, or the numbers of the words that make it. The last bytes are a size.
@c(LLVMFuzzerTestOneInput)
public func fuzz(_ start: UnsafeRawPointer?, _ count: Int) -> CInt {
    let data = start.map { Data(bytes: $0, count: count) } ?? Data()
    guard let kind = data.first else { return 0 }
    let bytes = data.dropFirst()
    let text =
        kind & 1 == 0
        ? String(decoding: bytes, as: UTF8.self)
        : "/_/" + bytes.map { words[Int($0) % words.count] }.joined()
    let numbers = bytes.suffix(4).map(Int.init)
    for parser in parsers {
        guard let address = try? parser.parse(text, now: 1_767_225_600) else { continue }
        check(address)
        let (first, second) = (numbers.first ?? 0, numbers.last ?? 0)
        for (width, height) in [(first, second), (first << 8, second), (1 << 16, 1), (200, 100), (.max, first)] {
            check(address.options, width, height)
        }
    }
    return 0
}

/// Words of URLs, from which most of them can be made.
private let words =
    [
        "/", ":", ":", ":", "@", ".", "%", "-", "plain/", "http://e.example/", "local:///a", "s3://b/a",
        "aHR0cDovL2EvYg",
        "0", "1", "2", "9", "0.5", "50", "100", "8192", "65535", "1e3", "99999999999999999999", "ce", "no", "soea",
        "fp",
        "sm", "re", "jpg", "png", "webp", "fit", "fill", "fill-down", "force", "auto", "fff", "%3A", "?", "#", "..",
        "é",
    ]
    + [
        "rs", "s", "rt", "w", "h", "mw", "mh", "z", "dpr", "el", "ex", "exar", "g", "c", "t", "pd", "ar", "rot", "fl",
        "bg",
        "bl", "sh", "pix", "wm", "q", "fq", "mb", "f", "skp", "raw", "cb", "exp", "fn", "att", "pr", "msr", "mafr",
        "msfs",
        "maf", "mrd",
    ].map { "/\($0):" }

private let parsers: [AddressParser] = {
    var open = AddressSettings()
    open.schemes = Set(SourceScheme.allCases)
    open.allowsSecurityOptions = true
    open.presets = ["default": "q:50", "no": "w:50/pr:ce", "ce": "bl:1/pr:no"]
    var closed = open
    closed.allowedOptions = ["w", "h", "rs", "pr"]
    closed.allowsSecurityOptions = false
    closed.replacements = [SourceReplacement("*://*a", with: "http://${2}.example/${1}${3}")]
    closed.baseURL = "http://e.example"
    closed.base64IncludesFileName = true
    closed.pathPrefix = "_"
    var named = open
    named.acceptsOnlyPresets = true
    named.argumentSeparator = "-"
    named.presets = ["no": "w-50/pr-ce", "ce": "bl-1/pr-no"]
    named.objectVersionSeparator = "a"
    var signed = open
    signed.signer = try? URLSigner(keys: [SignatureKeys(key: [1, 2], salt: [3])], size: 1)
    return [open, closed, named, signed].compactMap { try? AddressParser($0) }
}()

private func check(_ address: ImageAddress) {
    precondition(parsers.count == 4, "settings have a mistake")
    precondition(!address.options.canonicalText.utf8.contains { $0 < 0x20 || $0 == 0x7F }, "a control character")
    precondition(!address.source.utf8.contains { $0 < 0x20 || $0 == 0x7F }, "a control character")
    // The normal form of a source is its own normal form.
    let source = String(decoding: Base64URL.encode(Array(address.source.utf8)), as: UTF8.self)
    var settings = AddressSettings()
    settings.schemes = Set(SourceScheme.allCases)
    settings.objectVersionSeparator = ""
    guard source.utf8.count < 16_000, let parser = try? AddressParser(settings) else { return }
    let again = try? parser.parse("/_/\(source)", now: 0)
    precondition(again?.source == address.source, "the source is not in normal form")
}

private func check(_ options: ProcessingOptions, _ width: Int, _ height: Int) {
    let geometry = ResultGeometry(options, sourceWidth: width, sourceHeight: height)
    let limit = options.limits.effectiveResultSide
    precondition(1...limit ~= geometry.size.width && 1...limit ~= geometry.size.height, "over the limit")
    precondition(isInside(geometry.crop, geometry.source), "outside the source")
    precondition(isInside(geometry.resultCrop, geometry.scaled), "outside the resized image")
    precondition(isInside(geometry.position, geometry.canvas), "outside the canvas")
    guard let watermark = options.watermark else { return }
    let box = WatermarkGeometry(watermark, on: geometry, width: height, height: width).box
    precondition(box.x < geometry.size.width && box.y < geometry.size.height, "outside the result")
    precondition(box.x + box.width > 0 && box.y + box.height > 0, "outside the result")
}

private func isInside(_ box: PixelRectangle, _ size: PixelSize) -> Bool {
    box.x >= 0 && box.y >= 0 && box.width > 0 && box.height > 0 && box.x + box.width <= size.width
        && box.y + box.height <= size.height
}
