// SPDX-License-Identifier: Apache-2.0

/// The text of a file of settings: one `name = value` a line.
///
/// Empty lines and lines that begin with `#` do not count. A value may be in single or double quotes.
struct SettingsFile {
    /// The values by the name of the setting, in the order of the file.
    let values: [String: [SettingValue]]

    /// Reads a file.
    ///
    /// - Throws: ``SettingError`` with the number of the line, also for a name that no setting has, and for a second
    ///   value of a setting that takes only one.
    init(_ file: String, name fileName: String = "the file") throws(SettingError) {
        let settings = Dictionary(uniqueKeysWithValues: ServerSetting.all.map { ($0.name, $0) })
        var values: [String: [SettingValue]] = [:]
        let lines = file.split(omittingEmptySubsequences: false, whereSeparator: \.isNewline)
        for (index, content) in lines.enumerated() {
            // Some editors begin a file with a byte order mark.
            let hasMark = index == 0 && content.hasPrefix("\u{FEFF}")
            let line = (hasMark ? content.dropFirst() : content).trimmed
            guard !line.isEmpty, !line.hasPrefix("#") else { continue }
            let parts = line.split(separator: "=", maxSplits: 1, omittingEmptySubsequences: false)
            let name = parts[0].trimmed
            guard parts.count == 2 else {
                throw SettingError("Line \(index + 1) of \(fileName) is not a setting; write it as name = value.")
            }
            guard let setting = settings[name] else {
                throw SettingError("Line \(index + 1) of \(fileName) sets \(name), which is not a setting; see --help.")
            }
            guard let text = Self.unquoted(parts[1].trimmed) else {
                throw SettingError("Line \(index + 1) of \(fileName) has a quotation mark that is not closed.")
            }
            guard let value = SettingValue(text, spelling: "\(name) in line \(index + 1) of \(fileName)") else {
                continue
            }
            guard setting.isList || values[name] == nil else {
                throw SettingError("Line \(index + 1) of \(fileName) sets \(name) again; remove one of the lines.")
            }
            values[name, default: []].append(value)
        }
        self.values = values
    }

    /// Returns a value without the quotes around it, or `nil` if one of them is missing.
    private static func unquoted(_ text: String) -> String? {
        guard let quote = text.first, quote == "\"" || quote == "'" else { return text }
        guard text.count >= 2, text.last == quote else { return nil }
        return String(text.dropFirst().dropLast())
    }
}
