// SPDX-License-Identifier: Apache-2.0

extension ServerSettings {
    /// The width of a terminal that the help fits.
    private static let width = 100

    /// The options with a line or two about each, for the help of a command.
    ///
    /// ```swift
    /// print(ServerSettings.optionsHelp)
    /// ```
    public static var optionsHelp: String {
        let groups = ServerSetting.groups.map { group in
            ([group.title + ":"] + group.settings.flatMap { Self.optionLines(of: $0) }).joined(separator: "\n")
        }
        return groups.joined(separator: "\n\n")
    }

    /// The variables that the server reads, and imgproxy's variables without an effect.
    ///
    /// ```swift
    /// print(ServerSettings.environmentHelp)
    /// ```
    public static var environmentHelp: String {
        let groups = ServerSetting.groups.map { group in
            ([group.title + ":"] + group.settings.flatMap { Self.variableLines(of: $0) }).joined(separator: "\n")
        }
        let ineffective = IneffectiveVariables.all.flatMap { variables in
            Self.lines(of: variables.names.joined(separator: ", "), width: Self.width - 2).map { "  " + $0 }
                + Self.lines(of: variables.reason + ".", width: Self.width - 6).map { "      " + $0 }
        }
        let last = (["Known variables of imgproxy without an effect:"] + ineffective).joined(separator: "\n")
        return (groups + [last]).joined(separator: "\n\n")
    }

    private static func optionLines(of setting: ServerSetting) -> [String] {
        let indentation = 32
        let option = "  " + setting.option + (setting.placeholder.map { " " + $0 } ?? "")
        let summary = Self.lines(of: setting.summary, width: Self.width - indentation)
            .map { String(repeating: " ", count: indentation) + $0 }
        // A long option has a line of its own.
        guard let first = summary.first, option.count < indentation - 1 else { return [option] + summary }
        return [option + String(first.dropFirst(option.count))] + summary.dropFirst()
    }

    private static func variableLines(of setting: ServerSetting) -> [String] {
        let names = ([setting.variable] + setting.foreignVariables.map { $0.name }).joined(separator: ", ")
        return Self.lines(of: names, width: Self.width - 2).map { "  " + $0 }
            + Self.lines(of: setting.summary, width: Self.width - 6).map { "      " + $0 }
    }

    /// Returns the words of a text in lines of at most `width` characters; a longer word has a line of its own.
    private static func lines(of text: String, width: Int) -> [String] {
        var lines: [String] = []
        for word in text.split(separator: " ") {
            if let last = lines.last, last.count + 1 + word.count <= width {
                lines[lines.count - 1] = last + " " + String(word)
            } else {
                lines.append(String(word))
            }
        }
        return lines
    }
}
