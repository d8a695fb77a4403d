-- A connection for every request.
wrk.headers["connection"] = "close"
