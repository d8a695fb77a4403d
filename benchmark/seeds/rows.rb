# frozen_string_literal: true

require_relative "../http/rows/http_row"
require_relative "../http/rows/load"
require_relative "../http/rows/sleepers"
require_relative "../http/application"
require_relative "application"
require_relative "rows/rotation"
require_relative "rows/fairness"
require_relative "rows/lines"
require_relative "rows/export"
require_relative "rows/query"

module Bench
  module Seeds
    # The lines of the table, and what each wants of Heddle.
    module Rows
      module_function

      # @return [Array<Row>]
      def all
        [hello, short_sleep, long_sleep, Fairness.new, Lines.new, Export.new, Query.new, pipelined, static, compressed]
      end

      def hello
        HTTP::Rows::Load.new(key: "hello-8192", title: "hello, 8,192 connections", path: "/hello",
                             expected: Application::HELLO, connections: 8_192, goals: [best(1.2)])
      end

      def short_sleep
        Sleepers.new(key: "sleep-100ms-100", title: "sleep 0.1 s, 100 connections", seconds: 0.1, connections: 100,
                     goals: [Goal.new(at_least: 990, unit: "req/s")])
      end

      def long_sleep
        Sleepers.new(key: "sleep-1s-8", title: "sleep 1 s, 8 connections", seconds: 1, connections: 8,
                     goals: [Goal.new(at_least: 7.9, unit: "req/s")])
      end

      # Of sixteen answers wrk takes the time of one, and that is often 0.
      def pipelined
        HTTP::Rows::Load.new(key: "pipelined", title: "16 pipelined requests for two bytes", path: "/pipeline",
                             expected: Application::OK, script: "pipelined", p99: false, goals: [best(1.5)])
      end

      def static
        StaticRotation.new(key: "static", title: "20 public files by Rails' middleware, gzip", paths: StaticFiles.paths,
                           encodings: "br;q=1, gzip;q=0.8", goals: [best(1.0)])
      end

      def compressed
        Rotation.new(key: "json-gzip", title: "JSON of 25 to 50 items, compressed by Rack::Deflater",
                     paths: %w[/json/25?m=4 /json/40?m=8 /json/50?m=6], encodings: "gzip, br", goals: [best(1.0)])
      end

      def best(ratio) = Goal.new(at_least: ratio, than: Goal::BEST)

      # The rows of bin/bench http, for as long as the reported figures were measured.
      class Sleepers < HTTP::Rows::Sleepers
        def sizes(quick:) = super.merge(measured: quick ? 2 : 10)
      end
    end
  end
end
