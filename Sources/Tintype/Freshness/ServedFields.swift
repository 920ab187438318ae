import FoundationEssentials
import TintypeCaching
import TintypeDownloading

extension ResponseRecord {
    /// The fields as HTTP hands them on.
    ///
    /// `date` is now, where the response is reused without asking its origin (RFC 9111, 4 and 5.2.2.4): it
    /// has its present age, and no field that `no-cache` names. It is `nil` where the origin has just sent or
    /// confirmed it.
    func servedFields(reusedAt date: Date?) -> HTTPHeaders {
        var headers = HTTPHeaders()
        let control = CacheControl(self.values(for: "Cache-Control"))
        let hidden = date == nil ? [] : control.fieldsNotToReuse
        for field in self.fields where !hidden.contains(field.name.lowercased()) {
            headers.append(field.value, for: field.name)
        }
        if let date { headers["Age"] = String(Int(self.freshness.age(at: date))) }
        return headers
    }
}
