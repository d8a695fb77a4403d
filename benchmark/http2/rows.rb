# frozen_string_literal: true

require_relative "h2load"
require_relative "rows/load"
require_relative "rows/idle"

module Bench
  module HTTP2
    # The lines of the table, and what each wants of Heddle.
    module Rows
      IDLE = 10_000

      module_function

      # @return [Array<Row>]
      def all
        [hello(tls: false), hello(tls: true), hello_http1, body_12k, body_12m, post, stream, idle("idle-h2c", 3),
         idle("idle-tls", nil, tls: true), idle("idle-chromium", nil, tls: true, fields: "chromium")]
      end

      def hello(tls:)
        Load.new(key: tls ? "hello-tls" : "hello-h2c", title: "hello #{tls ? "over TLS" : "in plain text (h2c)"}",
                 path: "/hello", expected: Application::HELLO, tls:, goals: [best(1.5), nginx(0.7)])
      end

      # The same load over HTTP/1.1, without pipelining: what HTTP/2 is compared with.
      def hello_http1
        Load.new(key: "hello-http1", title: "hello over HTTP/1.1, plain text, one request at a time", path: "/hello",
                 expected: Application::HELLO, streams: 1, flags: %w[--h1])
      end

      def body_12k
        Load.new(key: "body-12k", title: "12 kB body, h2c", path: "/12k", expected: Application::BODY_12K,
                 goals: [best(1)])
      end

      # The windows are those of a browser: with 64 KiB the load generator's answers would be measured.
      def body_12m
        Load.new(key: "body-12m", title: "12 MB body, h2c, 8 connections, one request at a time", path: "/12m",
                 expected: Application::BODY_12M, connections: 8, streams: 1, warm_up: 40,
                 flags: %w[-w23 -W24], goals: [best(1)])
      end

      def post
        Load.new(key: "post", title: "POST of 64 kB, h2c", path: "/upload", body: HTTP::Rows::POSTED,
                 expected: "#{HTTP::Rows::POSTED.bytesize}\n", goals: [best(1)])
      end

      def stream
        Load.new(key: "stream", title: "Rack 3 streaming, #{Application::WRITES} writes, h2c", path: "/stream",
                 expected: Application::LINE * Application::WRITES, goals: [best(1)])
      end

      def idle(key, most, tls: false, fields: "none")
        way = tls ? "over TLS#{" with Chromium's fields" unless fields == "none"}" : "h2c"
        Idle.new(key:, title: "an idle connection of #{Figure.grouped(IDLE)}, #{way}", connections: IDLE, tls:, fields:,
                 goals: most ? [Goal.new(at_most: most, unit: "kB")] : [])
      end

      def best(ratio) = Goal.new(at_least: ratio, than: Goal::BEST)

      def nginx(ratio) = Goal.new(at_least: ratio, than: "nginx")
    end
  end
end
