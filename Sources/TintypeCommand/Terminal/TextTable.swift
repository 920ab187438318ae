/// Rows of text in aligned columns.
enum TextTable {
    /// One line for each row; two blanks stand between the columns.
    static func lines(_ rows: [[String]]) -> [String] {
        let count = rows.map(\.count).max() ?? 0
        let widths = (0..<count).map { column in
            rows.map { column < $0.count ? $0[column].columns : 0 }.max() ?? 0
        }
        return rows.map { row in
            row.enumerated().map { column, text in
                // Nothing stands behind the last one.
                column == row.count - 1 ? text : text.padded(to: widths[column])
            }.joined(separator: "  ")
        }
    }
}
