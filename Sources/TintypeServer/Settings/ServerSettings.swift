// SPDX-License-Identifier: Apache-2.0

import TintypeImgproxy

/// The settings of a server as people write them: options, variables and a file.
///
/// The order of precedence is: options, `TINTYPE_` variables, variables of imgproxy, the file. Empty variables, and
/// lines with an empty value, count as absent.
public struct ServerSettings: Sendable {
    /// The configuration, which ``ImageServer/Configuration/check()`` accepts.
    public let configuration: ImageServer.Configuration
    /// The warnings about unknown settings, settings without an effect and dangerous combinations, in full sentences.
    public let warnings: [String]

    /// Reads settings and checks them.
    ///
    /// ```swift
    /// let environment = ProcessInfo.processInfo.environment
    /// let settings = try ServerSettings(options: [("--listen", "127.0.0.1:0")], environment: environment)
    /// let server = try await ImageServer.start(settings.configuration)
    /// ```
    ///
    /// - Parameters:
    ///   - options: The options, such as `--quality` with `75`. Switches such as `--ui` and `--no-ui` have no value.
    ///   - environment: The variables of the process.
    ///   - file: The text of a file with one `name = value` a line.
    ///   - fileName: The name of that file, for messages.
    /// - Throws: ``SettingError`` for the first mistake.
    public init(
        options: [(name: String, value: String?)] = [],
        environment: [String: String] = [:],
        file: String? = nil,
        fileName: String = "the file"
    ) throws(SettingError) {
        let given = try Self.values(of: options)
        let written = try file.map { file throws(SettingError) in try SettingsFile(file, name: fileName).values } ?? [:]
        var draft = SettingsDraft()
        draft.warnings = Self.warnings(about: environment)
        for setting in ServerSetting.all {
            let layers = [
                given[setting.name] ?? [], Self.own(setting, in: environment), Self.foreign(setting, in: environment),
                written[setting.name] ?? [],
            ]
            guard let values = layers.first(where: { !$0.isEmpty }) else { continue }
            try setting.apply(values, &draft)
        }
        let configuration = try draft.finished()
        try configuration.check()
        self.configuration = configuration
        self.warnings = draft.warnings + Self.warnings(about: configuration)
    }

    /// The options without a value.
    package static let switches = Set(
        ServerSetting.all.filter { $0.placeholder == nil }.flatMap { [$0.option, $0.negativeOption ?? $0.option] }
    )

    /// The options with a value.
    package static let valueOptions = Set(ServerSetting.all.filter { $0.placeholder != nil }.map { $0.option })

    /// Returns the values of options by the name of the setting.
    private static func values(
        of options: [(name: String, value: String?)]
    ) throws(SettingError) -> [String: [SettingValue]] {
        var values: [String: [SettingValue]] = [:]
        for (name, value) in options {
            let match = ServerSetting.all.first { $0.option == name || $0.negativeOption == name }
            guard let setting = match else { throw SettingError("There is no option \(name); see --help.") }
            let text: String
            if setting.placeholder == nil {
                guard value == nil else { throw SettingError("\(name) takes no value.") }
                text = name == setting.option ? "true" : "false"
            } else {
                text = value ?? ""
            }
            guard let read = SettingValue(text, spelling: name) else { throw SettingError("\(name) needs a value.") }
            values[setting.name, default: []].append(read)
        }
        return values
    }

    /// Returns the value of Tintype's variable, if it is set.
    private static func own(_ setting: ServerSetting, in environment: [String: String]) -> [SettingValue] {
        let value = environment[setting.variable].flatMap { SettingValue($0, spelling: setting.variable) }
        return value.map { [$0] } ?? []
    }

    /// Returns the values of variables of other programs: all of them for a list, and otherwise the most important one.
    private static func foreign(_ setting: ServerSetting, in environment: [String: String]) -> [SettingValue] {
        let values = setting.foreignVariables.compactMap { variable in
            environment[variable.name].flatMap { SettingValue($0, spelling: variable.name) }
                .flatMap { variable.convert($0.text) }
                .flatMap { SettingValue($0, spelling: variable.name) }
        }
        return setting.isList ? values : Array(values.prefix(1))
    }

    /// Returns warnings about unknown variables and variables without an effect, sorted by name.
    private static func warnings(about environment: [String: String]) -> [String] {
        let known = Set(ServerSetting.all.flatMap { [$0.variable] + $0.foreignVariables.map { $0.name } })
        return environment.keys.sorted().compactMap { name in
            let isImgproxys = name.hasPrefix(IneffectiveVariables.prefix)
            guard isImgproxys || name.hasPrefix(ServerSetting.variablePrefix) else { return nil }
            guard !known.contains(name), !Self.otherVariables.contains(name) else { return nil }
            if let group = IneffectiveVariables.all.first(where: { $0.contains(name) }) {
                guard group.asksForMore(environment[name] ?? "") else { return nil }
                return "\(name) has no effect: \(group.reason)."
            }
            return "\(name) is not known and has no effect; tintype serve --help-environment lists the known variables."
        }
    }

    /// The variables that the library reads elsewhere.
    private static let otherVariables: Set = ["TINTYPE_JPEG_SHORTCUTS"]

    /// Returns warnings about settings that are permitted, but are dangerous or have no effect.
    private static func warnings(about configuration: ImageServer.Configuration) -> [String] {
        var warnings = configuration.sources.allowed.filter { SourcePattern.endsWithinHost($0) }.map { pattern in
            "The pattern \(pattern) of allow ends within a host, so it does not match longer hosts; write the "
                + "whole host, such as https://images.example.org/. imgproxy compares the beginnings of URLs instead."
        }
        if configuration.showsPage == true, !configuration.addresses.keys.isEmpty, !configuration.listensOnLoopback {
            warnings.append("The page of --ui signs URLs for everyone who reaches \(configuration.listenAddress).")
        }
        // Ignore an error here: the start of the server reports settings that the parser refuses.
        let settings = try? configuration.addressSettings(configuration.addresses)
        return warnings + (settings.flatMap { try? AddressParser($0) }?.warnings ?? [])
    }
}
