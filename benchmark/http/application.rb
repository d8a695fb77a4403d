# frozen_string_literal: true

require "json"

module Bench
  # The Rack 3 application whose requests are measured: one small answer for each row of bin/bench http, nothing that
  # favours a server. Bodies are made once, header hashes for each request, as Rack wants them.
  class Application
    HELLO = "Hello, world!\n"
    BODY_12K = ("0123456789abcde\n" * 768).freeze
    BODY_12M = (BODY_12K * 1_024).freeze
    LINE = "a line of the answer, one of many that are written one by one\n"
    WRITES = 99
    JSON_HEADERS = {
      "content-type" => "application/json", "cache-control" => "private, max-age=0", "etag" => 'W/"5f3e-8c1d2b"',
      "vary" => "accept-encoding", "x-request-id" => "0f8fad5b-d9cb-469f-a165-70867728950e",
      "x-frame-options" => "SAMEORIGIN", "x-content-type-options" => "nosniff",
      "referrer-policy" => "strict-origin-when-cross-origin", "permissions-policy" => "camera=(), microphone=()",
      "strict-transport-security" => "max-age=31536000"
    }.freeze
    JSON_OBJECT = { id: 17, name: "loom", tags: %w[warp weft heddle], price: 129.5, stock: 3, active: true }.freeze

    def initialize
      @answers = {
        "/hello" => method(:hello), "/json" => method(:json), "/12k" => method(:body_12k),
        "/12m" => method(:body_12m), "/upload" => method(:upload), "/stream" => method(:stream),
        "/sleep/0.1" => ->(_) { rest(0.1) }, "/sleep/1" => ->(_) { rest(1) }
      }.freeze
    end

    # @param env [Hash] Rack's
    # @return [Array(Integer, Hash, #each)]
    def call(env)
      answer = @answers[env["PATH_INFO"]]
      answer ? answer.call(env) : [404, { "content-type" => "text/plain" }, ["not found\n"]]
    end

    private

    def hello(_env) = text([HELLO])

    def json(_env) = [200, JSON_HEADERS.dup, [JSON.generate(JSON_OBJECT)]]

    def body_12k(_env) = text([BODY_12K])

    def body_12m(_env) = text([BODY_12M])

    # The number of bytes that arrived, so that a server that loses some is found out.
    def upload(env)
      text(["#{env["rack.input"]&.read.to_s.bytesize}\n"])
    end

    def stream(_env)
      writes = lambda do |stream|
        WRITES.times { stream.write(LINE) }
      ensure
        stream.close
      end
      text(writes)
    end

    def rest(seconds)
      sleep(seconds)
      text([HELLO])
    end

    def text(body) = [200, { "content-type" => "text/plain" }, body]
  end
end
