-- A body of 64 kB with every request.
wrk.method = "POST"
wrk.headers["content-type"] = "application/octet-stream"
wrk.body = string.rep("0123456789abcde\n", 4096)
