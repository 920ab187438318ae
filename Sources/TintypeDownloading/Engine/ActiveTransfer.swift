/// What a transfer holds while libcurl works on it.
struct ActiveTransfer {
    let handle: EasyHandle
    /// libcurl does not copy them.
    let headers: HeaderList
    /// Whether it has given its place to others.
    var isLagging = false
}
