# frozen_string_literal: true

require "json"
require_relative "items"

module Bench
  module Seeds
    # The requests of the rows that no other benchmark has.
    class Application
      HELLO = "Hello, world!\n"
      OK = "ok"
      LINE = "99 bottles of beer on the wall\n"
      LINES = 5
      CSV_ROW = "1000017,heddle,weaving,129.50,3,true,2026-11-27\n"
      FILES = "HEDDLE_BENCH_FILES"           # the environment variable with the folder whose `static` is served
      POSTGRESQL = "HEDDLE_BENCH_POSTGRESQL" # with the database's URL

      # @param files [String, nil] the folder
      def initialize(files = ENV.fetch(FILES, nil))
        @idle = Thread::Queue.new
        @files = public_files(files) if files
      end

      # @param env [Hash] Rack's
      # @return [Array(Integer, Hash, #each)]
      def call(env)
        _, kind, number = env["PATH_INFO"].split("/")
        case kind
        when "hello" then text([HELLO])
        when "pipeline" then text([OK])
        when "sleep" then sleep(number.to_f) && text([HELLO])
        when "cpu" then text(["#{fibonacci(number.to_i)}\n"])
        when "lines" then text(lines)
        when "csv" then [200, { "content-type" => "text/csv" }, csv(number.to_i)]
        when "query" then text([query(number.to_f)])
        when "json" then json(number.to_i, env["QUERY_STRING"][/\bm=(\d+)/, 1].to_i)
        when "static" then @files.call(env)
        else [404, { "content-type" => "text/plain" }, ["not found\n"]]
        end
      end

      private

      def text(body) = [200, { "content-type" => "text/plain" }, body]

      def json(count, multiplier)
        [200, { "content-type" => "application/json" }, [JSON.generate(Items.priced(count, multiplier))]]
      end

      # As Rails serves public files, with the compressed file where there is one and the client takes it.
      def public_files(folder)
        require "action_dispatch"
        require "action_dispatch/middleware/static"
        ActionDispatch::Static.new(->(_) { [404, {}, []] }, folder)
      end

      def fibonacci(number) = number < 2 ? number : fibonacci(number - 1) + fibonacci(number - 2)

      def lines
        lambda do |stream|
          LINES.times do |index|
            sleep(1) unless index.zero?
            stream.write(LINE)
          end
        ensure
          stream.close
        end
      end

      # A row at a time, as an export writes them.
      def csv(rows)
        lambda do |stream|
          rows.times { stream.write(CSV_ROW) }
        ensure
          stream.close
        end
      end

      def query(seconds)
        require "pg"
        connection = begin
          @idle.pop(true)
        rescue ThreadError
          PG.connect(ENV.fetch(POSTGRESQL))
        end
        connection.exec("SELECT pg_sleep(#{seconds})").clear
        @idle << connection
        OK
      end
    end
  end
end
