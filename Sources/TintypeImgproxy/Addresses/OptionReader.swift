// SPDX-License-Identifier: Apache-2.0

/// Collects the options of one URL.
struct OptionReader {
    private(set) var options: ProcessingOptions
    /// The presets whose options are being applied, the innermost last.
    private var openPresets: [String] = []
    private var count = 0
    /// The presets that contain themselves.
    private(set) var loops: [String] = []

    /// The most options of a URL, with the options of all its presets.
    ///
    /// Nested presets multiply.
    private static let limit = 1_000

    /// Creates a reader that has read no options.
    init(_ defaults: ProcessingOptions) {
        self.options = defaults
    }

    /// Applies an option.
    mutating func apply(_ option: OptionText, by rules: OptionRules) throws(AddressError) {
        self.count += 1
        guard self.count <= Self.limit else {
            throw .invalidURL("There are more than \(Self.limit) options, including the options of presets.")
        }
        // Presets may use all options, because the owner of the server writes them.
        let isAllowed = rules.allowedOptions.isEmpty || rules.allowedOptions.contains(option.spelling)
        guard isAllowed || !self.openPresets.isEmpty else {
            throw .invalidURL("The option \(Quotation.of(option.spelling)) is not allowed on this server.")
        }
        guard !option.name.isSecurityOption || rules.allowsSecurityOptions else {
            throw AddressError(
                reason: .forbiddenOption,
                message: "The option \(Quotation.of(option.spelling)) sets a limit, which this server does not allow."
            )
        }
        do throws(OptionError) {
            try self.options.set(option.name, OptionArguments(option.arguments[...]))
        } catch {
            throw .invalidURL("Option \(option.spelling): \(error.message)")
        }
        if option.name == .preset { try self.apply(presets: option.arguments, by: rules) }
    }

    /// Applies the options of presets in their order.
    ///
    /// A preset within itself has no effect.
    mutating func apply(presets names: [String], by rules: OptionRules) throws(AddressError) {
        for name in names {
            guard let preset = rules.presets[name] else {
                throw .invalidURL("There is no preset \(Quotation.of(name)).")
            }
            guard !self.openPresets.contains(name) else {
                self.loops.append(name)
                continue
            }
            self.openPresets.append(name)
            for option in preset { try self.apply(option, by: rules) }
            self.openPresets.removeLast()
        }
    }
}

/// The part of the settings that decides about options.
struct OptionRules: Sendable {
    let allowedOptions: Set<String>
    let allowsSecurityOptions: Bool
    let presets: [String: [OptionText]]
}

/// An option as a URL or a preset writes it, such as `rs:fill:300:200`.
struct OptionText: Sendable, Hashable {
    let name: OptionName
    /// The name as it is written.
    let spelling: String
    let arguments: [String]

    /// Reads a segment.
    ///
    /// Throws if there is no such option.
    init(_ segment: ArraySlice<UInt8>, separator: [UInt8]) throws(AddressError) {
        let end = segment.firstIndex(of: separator) ?? segment.endIndex
        self.spelling = String(decoding: segment[..<end], as: UTF8.self)
        self.arguments =
            end == segment.endIndex ? [] : segment[(end + separator.count)...].texts(separatedBy: separator)
        guard let name = OptionName(urlName: self.spelling) else {
            let name = Quotation.of(self.spelling)
            throw .invalidURL(
                OptionName.proNames.contains(self.spelling)
                    ? "\(name) is an option of imgproxy Pro, which Tintype does not have."
                    : "There is no option \(name)."
            )
        }
        self.name = name
    }
}
