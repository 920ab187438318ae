// SPDX-License-Identifier: Apache-2.0

import TintypeHTTP

/// The form of the page, as a browser without JavaScript sends it.
enum PageForm {
    /// The fields that are options of the same names; the others need JavaScript.
    private static let options = ["w", "h", "rt", "dpr", "el", "mb", "q"]

    /// Returns the path of the image that the query of `target` describes, without a signature; `nil` without a source.
    static func path(of target: String) -> String? {
        var fields: [String: String] = [:]
        for pair in target.drop(while: { $0 != "?" }).dropFirst().split(separator: "&").prefix(64) {
            let parts = pair.split(separator: "=", maxSplits: 1, omittingEmptySubsequences: false)
            guard parts.count == 2 else { continue }
            let value = PercentEncoding.decode(parts[1].utf8.map { $0 == UInt8(ascii: "+") ? UInt8(ascii: " ") : $0 })
            fields[String(parts[0])] = String(decoding: value, as: UTF8.self)
        }
        func encoded(_ name: String) -> String? {
            guard let value = fields[name], !value.isEmpty else { return nil }
            // A slash is encoded as well: browsers would remove dot segments, and the server would repair `:/`.
            return PercentEncoding.encode(value.utf8)
        }
        guard let source = encoded("url") else { return nil }
        let options = self.options.compactMap { name in encoded(name).map { "\(name):\($0)" } }
        let format = encoded("f").map { "@\($0)" } ?? ""
        return "/" + (options + ["plain", source]).joined(separator: "/") + format
    }
}
