# frozen_string_literal: true

module Conformance
  # Requests as bytes.
  module Requests
    # @param lines [Array<String>] header lines
    # @param line [String] the request line
    # @param host [String, Array<String>, nil] header lines that come first
    # @return [String] binary
    def request(*lines, line: "GET / HTTP/1.1", host: "Host: a", body: "")
      [line, *host, *lines, "", body].map(&:b).join("\r\n")
    end

    def get(path, *lines, **) = request(*lines, line: "GET #{path} HTTP/1.1", **)

    def post(*lines, path: "/", **) = request(*lines, line: "POST #{path} HTTP/1.1", **)

    # A POST whose body is chunked; `body` is what stands on the wire.
    def chunked(body, *lines, **) = post("Transfer-Encoding: chunked", *lines, body:, **)

    # A POST with its length.
    def sized(body, *lines, **) = post("Content-Length: #{body.bytesize}", *lines, body:, **)

    # @return [String] a byte as a test's name has it
    def named(byte) = format("byte_%02x", byte)

    # What RFC 9110, 5.6.2 lets stand in names and methods.
    TOKEN = "!#$%&'*+-.^_`|~0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ".bytes.freeze
  end
end
