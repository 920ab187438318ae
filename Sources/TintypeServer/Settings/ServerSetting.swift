// SPDX-License-Identifier: Apache-2.0

/// One setting of a server: its names, its line in the help, and its effect.
///
/// ``groups`` is the only list of settings. Options, the file, the environment and the help follow from it.
struct ServerSetting: Sendable {
    /// Settings that belong together, with their title in the help.
    typealias Group = (title: String, settings: [ServerSetting])

    /// The name in the file, such as `cache-dir`.
    let name: String
    /// The name of the value in the help, or `nil` for a switch.
    let placeholder: String?
    /// Whether the setting collects all values, instead of taking the last one.
    let isList: Bool
    /// The description of the setting, for the help.
    let summary: String
    /// The variables of imgproxy and other programs that mean the same, the most important one first.
    let foreignVariables: [ForeignVariable]
    /// Reads the values, at least one, and changes the draft.
    let apply: @Sendable (_ values: [SettingValue], _ draft: inout SettingsDraft) throws(SettingError) -> Void

    /// Creates a setting.
    init<Value>(
        _ name: String,
        _ kind: SettingKind<Value>,
        _ summary: String,
        foreign foreignVariables: [ForeignVariable] = [],
        set: @escaping @Sendable (_ draft: inout SettingsDraft, _ value: Value) -> Void
    ) {
        self.name = name
        self.placeholder = kind.placeholder
        self.isList = kind.isList
        self.summary = summary
        self.foreignVariables = foreignVariables
        self.apply = { (values: [SettingValue], draft: inout SettingsDraft) throws(SettingError) in
            let value = try kind.read(values, &draft.warnings)
            set(&draft, value)
        }
    }

    /// The option, such as `--cache-dir`.
    var option: String { "--" + self.name }

    /// The option that turns a switch off, such as `--no-ui`; `nil` for settings with a value.
    var negativeOption: String? { self.placeholder == nil ? "--no-" + self.name : nil }

    /// The variable, such as `TINTYPE_CACHE_DIR`.
    var variable: String {
        Self.variablePrefix + String(self.name.map { $0 == "-" ? "_" : Character($0.uppercased()) })
    }

    /// The beginning of the names of variables.
    static let variablePrefix = "TINTYPE_"

    /// Every setting, by group.
    static let groups: [Group] = [
        ("Server", Self.ofServer), ("URLs", Self.ofAddresses), ("Images", Self.ofImages),
        ("Sources", Self.ofSources), ("Caching", Self.ofCaching), ("Load", Self.ofLoad),
    ]

    /// Every setting.
    static let all = Self.groups.flatMap { $0.settings }
}

/// A variable of another program that stands for a setting.
struct ForeignVariable: Sendable, ExpressibleByStringLiteral {
    let name: String
    /// Returns the text of the setting for the text of the variable, or `nil` if that leaves the default.
    let convert: @Sendable (String) -> String?

    init(_ name: String, convert: @escaping @Sendable (String) -> String?) {
        self.name = name
        self.convert = convert
    }

    /// Creates a variable with the same texts as the setting.
    init(stringLiteral name: String) {
        self.init(name) { $0 }
    }

    /// Creates a variable that adds `text` if it is true.
    init(_ name: String, ifTrue text: String) {
        self.init(name) { value in
            guard let truth = SettingValue(value, spelling: name)?.truth else { return value }
            return truth ? text : nil
        }
    }
}
