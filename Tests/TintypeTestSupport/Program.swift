// SPDX-License-Identifier: Apache-2.0

import Glibc

/// Finds installed programs.
public enum Program {
    /// Returns the full path of the program `name`, or throws an error that names its Debian package.
    public static func path(of name: String, package: String) throws -> String {
        let path = getenv("PATH").map { String(cString: $0) } ?? ""
        // Servers are often in folders that are not in the path of ordinary users.
        let folders = path.split(separator: ":").map(String.init) + ["/usr/sbin", "/usr/local/sbin", "/sbin"]
        guard let folder = folders.first(where: { access("\($0)/\(name)", X_OK) == 0 }) else {
            throw TestSupportError("\(name) is not installed; run: apt-get install \(package)")
        }
        return "\(folder)/\(name)"
    }
}
