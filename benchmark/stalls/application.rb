# frozen_string_literal: true

require "fiddle"
require_relative "libraries"
require_relative "native_call_cost"

module Bench
  module Stalls
    # Requests that block in every way there is, and requests that don't: /native/500 is 500 ms of a native call.
    class Application
      LIBRARY = "HEDDLE_BENCH_WORK" # the environment variable with the path of work.c, compiled
      HELLO = "Hello, world!\n"

      def initialize(library = ENV.fetch(LIBRARY))
        work = Fiddle.dlopen(library)
        @kinds = {
          "sleep" => ->(milliseconds) { sleep(milliseconds / 1_000.0) },
          "native" => function(work, "work_wait", need_gvl: false),
          "held" => function(work, "work_wait", need_gvl: true),
          "burn" => function(work, "work_compute", need_gvl: true),
          "ruby" => method(:compute),
          **Libraries.new.kinds,
          **NativeCallCost.new(work).kinds
        }.freeze
      end

      # @param env [Hash] Rack's
      # @return [Array(Integer, Hash, Array)]
      def call(env)
        _, kind, milliseconds = env["PATH_INFO"].split("/")
        if milliseconds
          work = @kinds[kind] or return [404, { "content-type" => "text/plain" }, ["not found\n"]]
          answer = work.call(milliseconds.to_i)
        end
        [200, { "content-type" => "text/plain" }, [answer.is_a?(String) ? answer : HELLO]]
      end

      private

      def function(library, name, need_gvl:)
        Fiddle::Function.new(library[name], [Fiddle::TYPE_INT], Fiddle::TYPE_VOID, need_gvl:)
      end

      def compute(milliseconds)
        deadline = now + milliseconds
        sum = 0
        sum += 1 while now < deadline
        sum
      end

      def now = Process.clock_gettime(Process::CLOCK_MONOTONIC, :float_millisecond)
    end
  end
end
