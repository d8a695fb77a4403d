# frozen_string_literal: true

require_relative "../http/rows/http_row"
require_relative "../http/rows/load"
require_relative "rows/stalls_row"
require_relative "rows/crowd_row"
require_relative "rows/neighbours"

module Bench
  module Stalls
    # The lines of the table, and what each wants of Heddle.
    module Rows
      # What the protections cost when nothing stalls.
      class Hello < HTTP::Rows::Load
        def processes = 1
      end

      module_function

      # @return [Array<Row>]
      def all
        [native("native", 2), native("native-1", 1), held, burn, ruby, hello]
      end

      def native(key, processes)
        CrowdRow.new(key:, processes:, kind: "native", goals: [at_most(1.05, "s")],
                     title: "5 native calls of 10 s, then 50 requests of 1 s#{"; one process" if processes == 1}")
      end

      def held
        CrowdRow.new(key: "held", kind: "held", goals: [at_most(1.1, "s")],
                     title: "the same, and the calls keep Ruby's lock (they wait in C)")
      end

      def burn
        Neighbours.new(key: "burn", kind: "burn", blockers: 1, fresh: true, figure: :max, goals: [at_most(30, "ms")],
                       title: "1 native call that computes and keeps Ruby's lock: longest answer to idle and new " \
                              "clients")
      end

      def ruby
        Neighbours.new(key: "ruby", kind: "ruby", processes: 1, goals: [at_most(60, "ms")],
                       title: "5 requests compute in Ruby for 10 s, one process: p99 of 50 light clients")
      end

      def hello
        Hello.new(key: "hello", title: "hello, 64 connections, one process", path: "/hello",
                  expected: Application::HELLO, goals: [Goal.new(at_least: 0.97, than: "heddle-off")])
      end

      def at_most(figure, unit) = Goal.new(at_most: figure, unit:)
    end
  end
end
