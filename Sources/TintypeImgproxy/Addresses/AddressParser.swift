// SPDX-License-Identifier: Apache-2.0

/// Reads the URLs that imgproxy understands.
///
/// The time is proportional to the length of the URL, apart from the options of presets.
package struct AddressParser: Sendable {
    package let settings: AddressSettings
    /// Texts for the log about presets that contain themselves.
    package let warnings: [String]

    private let pathPrefix: [UInt8]
    private let baseURL: [UInt8]
    /// Whether the base URL ends with the name of a host.
    private let baseEndsWithHost: Bool
    private let separator: [UInt8]
    private let rules: OptionRules
    /// The options of a URL without options.
    private let defaults: OptionReader

    /// The longest target of a request in bytes.
    package static let longestTarget = 16_384

    /// Creates a parser.
    ///
    /// Throws if the settings have a mistake, such as a preset with an unknown option.
    package init(_ settings: AddressSettings) throws(AddressSettingsError) {
        guard !settings.argumentSeparator.isEmpty else {
            throw AddressSettingsError(message: "The separator of arguments is empty. Use a colon.")
        }
        let isKnown = { OptionName(urlName: $0) != nil || OptionName.proNames.contains($0) }
        if let name = settings.allowedOptions.sorted().first(where: { !isKnown($0) }) {
            throw AddressSettingsError(
                message: "The allowed option \(Quotation.of(name)) does not exist. Use the names in URLs, such as rs."
            )
        }
        self.settings = settings
        self.separator = Array(settings.argumentSeparator.utf8)
        self.pathPrefix = Self.trimmed(settings.pathPrefix)
        self.baseURL = Array(settings.baseURL.utf8)
        self.baseEndsWithHost = Self.endsWithHost(self.baseURL)
        var presets: [String: [OptionText]] = [:]
        for (name, text) in settings.presets { presets[name] = try Self.preset(name, text, separator: self.separator) }
        let rules = OptionRules(
            allowedOptions: settings.allowedOptions,
            allowsSecurityOptions: settings.allowsSecurityOptions,
            presets: presets
        )
        self.rules = rules
        var warnings: [String] = []
        let empty = OptionReader(settings.defaults)
        for name in presets.keys.sorted() {
            var reader = empty
            do throws(AddressError) {
                try reader.apply(presets: [name], by: rules)
                try Self.check(reader.options)
            } catch {
                throw AddressSettingsError(message: "Preset \(name): \(error.message)")
            }
            if reader.loops.contains(name) {
                warnings.append("The preset \(name) contains itself. The inner one has no effect.")
            }
        }
        self.warnings = warnings
        var defaults = empty
        // The loop above has applied it without an error.
        if presets["default"] != nil { try? defaults.apply(presets: ["default"], by: rules) }
        self.defaults = defaults
    }

    /// Returns the meaning of `target`, the path and the query of a request as they were sent.
    ///
    /// `now` is the time in seconds since 1970. The signature is checked before anything else is read.
    package func parse(_ target: String, now: Int) throws(AddressError) -> ImageAddress {
        guard target.utf8.count <= Self.longestTarget else {
            throw .invalidURL("The URL is longer than \(Self.longestTarget) bytes.")
        }
        let bytes = Array(target.utf8)
        guard bytes.allSatisfy({ $0 > 0x20 && $0 != 0x7F }) else {
            throw .invalidURL("The URL has a space or a control character.")
        }
        let path = try RequestPath(bytes, prefix: self.pathPrefix)
        try self.verify(path)
        return try self.address(path.signed, now: now)
    }

    // MARK: Signature

    private func verify(_ path: RequestPath) throws(AddressError) {
        let isTrusted = self.settings.trustedSignatures
            .reduce(false) { ConstantTime.isEqual(path.signature, $1.utf8) || $0 }
        if isTrusted { return }
        if let signer = self.settings.signer {
            guard signer.accepts(path.signature, of: path.signed) else {
                throw .forbidden("The signature does not belong to this URL and to a key of this server.")
            }
        } else if path.signature.contains(UInt8(ascii: ":")) {
            throw .forbidden("The signature is missing. Without signatures, start the path with /unsafe/.")
        }
    }

    // MARK: Options

    /// The first segments of the old form of URLs, which has no names of options.
    private static let retired = Set(ResizingType.allCases.map(\.rawValue))

    private func address(_ path: [UInt8], now: Int) throws(AddressError) -> ImageAddress {
        var reader = self.defaults
        var rest = path.dropFirst()
        var isFirst = true
        while true {
            let end = rest.firstIndex(of: UInt8(ascii: "/")) ?? rest.endIndex
            let segment = rest[..<end]
            if isFirst, self.settings.acceptsOnlyPresets {
                try reader.apply(presets: segment.texts(separatedBy: self.separator), by: self.rules)
                rest = rest[end...].dropFirst()
                break
            }
            guard segment.firstIndex(of: self.separator) != nil else {
                let isRetired = isFirst && Self.retired.contains(String(decoding: segment, as: UTF8.self))
                guard !isRetired else {
                    throw .invalidURL("URLs without names of options are not supported. Start them with rs: or size:.")
                }
                break
            }
            try reader.apply(OptionText(segment, separator: self.separator), by: self.rules)
            rest = rest[end...].dropFirst()
            isFirst = false
        }
        var options = reader.options
        let text = try SourceText(rest, includesFileName: self.settings.base64IncludesFileName)
        if !options.isRaw, !text.suffix.isEmpty {
            do throws(OptionError) {
                options.format = try OptionArguments.format(text.suffix)
            } catch {
                throw .invalidURL("Extension of the source: \(error.message)")
            }
        }
        try Self.check(options)
        if let expires = options.expires, expires < now {
            throw .invalidURL("The URL expired \(now.subtractingReportingOverflow(expires).partialValue) seconds ago.")
        }
        return try self.address(text, options)
    }

    private static func check(_ options: ProcessingOptions) throws(AddressError) {
        do throws(OptionError) {
            try options.checkSides()
        } catch {
            throw .invalidURL(error.message)
        }
    }

    // MARK: Source

    private func address(_ text: SourceText, _ options: ProcessingOptions) throws(AddressError) -> ImageAddress {
        var source = text.source
        for replacement in self.settings.replacements {
            source = replacement.apply(to: source)
            // A replacement may repeat parts of the source.
            guard source.count <= Self.longestTarget else { throw .invalidSource("The source URL is too long.") }
        }
        source = self.completed(source)
        guard source.allSatisfy({ $0 >= 0x20 && $0 != 0x7F }) else {
            throw .invalidSource("The source URL has a control character.")
        }
        var version: [UInt8]?
        let separator = Array(self.settings.objectVersionSeparator.utf8)
        if !separator.isEmpty, !Self.isWeb(source), let start = source[...].firstIndex(of: separator) {
            version = Array(source[(start + separator.count)...])
            source.removeSubrange(start...)
        }
        let url = try SourceURL(source)
        guard self.settings.schemes.contains(url.scheme) else {
            throw .invalidSource("Sources of the scheme \(url.scheme.rawValue) are switched off on this server.")
        }
        var objectVersion: String?
        if let version {
            guard let text = String(validating: version, as: UTF8.self) else {
                throw .invalidSource("The version of the object is not UTF-8.")
            }
            objectVersion = text
        }
        return ImageAddress(options: options, scheme: url.scheme, source: url.text, objectVersion: objectVersion)
    }

    /// Returns a source with the base URL in front.
    ///
    /// A slash ends the name of a host, so that no source can continue the name.
    private func completed(_ source: [UInt8]) -> [UInt8] {
        guard !self.baseURL.isEmpty else { return source }
        let slash = self.baseEndsWithHost ? [UInt8(ascii: "/")] : []
        guard !source.starts(with: self.baseURL + slash) else { return source }
        return self.baseURL + (source.first == UInt8(ascii: "/") ? [] : slash) + source
    }

    private static func isWeb(_ source: [UInt8]) -> Bool {
        let name = source.prefix(6).prefix { $0 != UInt8(ascii: ":") }
        return SourceScheme(rawValue: String(decoding: name, as: UTF8.self).lowercased())?.isWeb ?? false
    }

    // MARK: Settings

    private static func trimmed(_ prefix: String) -> [UInt8] {
        let slash = UInt8(ascii: "/")
        return prefix.utf8.drop { $0 == slash }.reversed().drop { $0 == slash }.reversed()
    }

    private static func endsWithHost(_ base: [UInt8]) -> Bool {
        guard let mark = base[...].firstIndex(of: Array("://".utf8)) else { return false }
        let host = base[(mark + 3)...]
        return !host.isEmpty && !host.contains(UInt8(ascii: "/"))
    }

    private static func preset(
        _ name: String,
        _ text: String,
        separator: [UInt8]
    ) throws(AddressSettingsError) -> [OptionText] {
        guard text.utf8.allSatisfy({ $0 > 0x20 && $0 != 0x7F }) else {
            throw AddressSettingsError(message: "Preset \(name): Remove the spaces and control characters.")
        }
        var options: [OptionText] = []
        for segment in Array(text.utf8).split(separator: UInt8(ascii: "/")) {
            guard segment.firstIndex(of: separator) != nil else {
                let segment = Quotation.of(String(decoding: segment, as: UTF8.self))
                throw AddressSettingsError(message: "Preset \(name): The option \(segment) has no argument.")
            }
            do throws(AddressError) {
                options.append(try OptionText(segment, separator: separator))
            } catch {
                throw AddressSettingsError(message: "Preset \(name): \(error.message)")
            }
        }
        return options
    }
}
