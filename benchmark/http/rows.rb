# frozen_string_literal: true

require_relative "application"
require_relative "rows/http_row"
require_relative "rows/load"
require_relative "rows/sleepers"
require_relative "rows/idle"

module Bench
  module HTTP
    # The lines of the table, and what each wants of Heddle.
    module Rows
      POSTED = ("0123456789abcde\n" * 4_096).freeze

      module_function

      # @return [Array<Row>]
      def all
        [hello(64), hello(1_000), json, body_12k, body_12m, post, pipelined, close, stream, short_sleep, long_sleep,
         idle]
      end

      def hello(connections)
        goals = [best(1.2), nginx(0.7), Goal.new(of: :cpu_us, at_most: 14)]
        goals << Goal.new(of: :p99_ms, at_most: 50) if connections > 64
        Load.new(key: "hello-#{connections}", title: "hello, #{Figure.grouped(connections)} connections",
                 path: "/hello", expected: Application::HELLO, connections:, goals:)
      end

      def json
        Load.new(key: "json", title: "JSON with ten response headers", path: "/json",
                 expected: JSON.generate(Application::JSON_OBJECT), goals: [best(1.1)])
      end

      def body_12k
        Load.new(key: "body-12k", title: "12 kB body", path: "/12k", expected: Application::BODY_12K,
                 goals: [best(1.2)])
      end

      def body_12m
        Load.new(key: "body-12m", title: "12 MB body, 8 connections", path: "/12m", connections: 8,
                 expected: Application::BODY_12M, goals: [best(1.2)])
      end

      def post
        Load.new(key: "post", title: "POST of 64 kB", path: "/upload", body: POSTED, script: "post",
                 expected: "#{POSTED.bytesize}\n", goals: [best(1.1)])
      end

      # Of sixteen answers wrk takes the time of one, and that is often 0.
      def pipelined
        Load.new(key: "pipelined", title: "16 pipelined hellos", path: "/hello", script: "pipelined",
                 expected: Application::HELLO, p99: false, goals: [best(1.5)])
      end

      def close
        Load.new(key: "close", title: "a connection per request", path: "/hello", script: "close",
                 expected: Application::HELLO, goals: [best(1.1)])
      end

      def stream
        Load.new(key: "stream", title: "Rack 3 streaming, #{Application::WRITES} writes", path: "/stream",
                 expected: Application::LINE * Application::WRITES, goals: [best(2)])
      end

      def short_sleep
        Sleepers.new(key: "sleep-100ms", title: "sleep 0.1 s, 1,000 connections", seconds: 0.1, connections: 1_000,
                     goals: [Goal.new(at_least: 9_500, unit: "req/s"), Goal.new(of: :p99_ms, at_most: 130)])
      end

      def long_sleep
        Sleepers.new(key: "sleep-1s", title: "sleep 1 s, 5,000 connections", seconds: 1, connections: 5_000,
                     goals: [Goal.new(at_least: 4_900, unit: "req/s"), Goal.new(of: :p99_ms, at_most: 1_200)])
      end

      def idle
        Idle.new(key: "idle", title: "10,000 idle connections, memory above the empty server", connections: 10_000,
                 goals: [Goal.new(at_most: 40, unit: "MB")])
      end

      def best(ratio) = Goal.new(at_least: ratio, than: Goal::BEST)

      def nginx(ratio) = Goal.new(at_least: ratio, than: "nginx")
    end
  end
end
