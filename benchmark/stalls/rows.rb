# frozen_string_literal: true

require_relative "../http/rows/http_row"
require_relative "../http/rows/load"
require_relative "rows/stalls_row"
require_relative "rows/crowd_row"
require_relative "rows/neighbours"
require_relative "rows/waiting_libraries"
require_relative "rows/lock"
require_relative "rows/ticker"
require_relative "rows/call_cost"

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
        [native("native", 2), native("native-1", 1), held, stuck, burn, ruby, *waiting_libraries, lock,
         *computing_libraries, *costs, hello]
      end

      def native(key, processes)
        CrowdRow.new(key:, processes:, kind: "native", goals: [at_most(1.05, "s")],
                     title: "5 native calls of 10 s, then 50 requests of 1 s#{"; one process" if processes == 1}")
      end

      def held
        CrowdRow.new(key: "held", kind: "held", goals: [at_most(1.1, "s")],
                     title: "the same, and the calls keep Ruby's lock (they wait in C)")
      end

      # More of them than there are workers: only another process can answer.
      def stuck
        CrowdRow.new(key: "stuck", kind: "burn", goals: [at_most(1.3, "s")],
                     title: "the same, and the calls compute with Ruby's lock held: every worker is held up")
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

      def waiting_libraries
        [%w[pg postgresql pg], ["pg-sync", "postgresql", "pg's sync_exec"], %w[mysql2 mariadb mysql2],
         %w[net-http http Net::HTTP]].map do |kind, service, name|
          WaitingLibraries.new(key: kind, kind:, service: service.to_sym, processes: 1, goals: [at_most(1.07, "s")],
                               title: "50 requests wait for 1 s in #{name}; one process")
        end
      end

      def lock
        Lock.new(key: "flock", kind: "flock", blockers: 0, processes: 1, goals: [at_most(2.1, "s")],
                 title: "2 requests that hold the same flock for 1 s each; one process")
      end

      def computing_libraries
        { "rsa" => "RSA keys", "bcrypt" => "bcrypt", "zlib" => "zlib" }.map do |kind, name|
          Ticker.new(key: kind, kind:, blockers: Etc.nprocessors, processes: 1, goals: [at_most(20, "ms")],
                     title: "as many requests compute in #{name} as there are cores, one process: how late a sleep " \
                            "of 20 ms ends")
        end
      end

      def costs
        [["call-inline", "a native call of a library that is listed as quick", 0.6],
         ["call", "a native call of any other", 15]].map do |kind, title, goal|
          CallCost.new(key: kind, kind:, title:, goals: [at_most(goal, "µs")])
        end
      end

      def hello
        Hello.new(key: "hello", title: "hello, 64 connections, one process", path: "/hello",
                  expected: Application::HELLO, goals: [Goal.new(at_least: 0.97, than: "heddle-off")])
      end

      def at_most(figure, unit) = Goal.new(at_most: figure, unit:)
    end
  end
end
