# frozen_string_literal: true

module Bench
  module Questions
    # Does a native call that blocks stop the other requests?
    class NativeCalls < Experiment
      # The first one gives up Ruby's lock, the second one keeps it; both sleep in C.
      CASES = <<~'RUBY'
        when %r{\A/native/(gives-up|keeps)/(\d+)\z}
          require "fiddle"
          Fiddle::Function.new(Fiddle.dlopen(nil)["usleep"], [Fiddle::TYPE_INT], Fiddle::TYPE_INT,
                               need_gvl: $1 == "keeps").call($2.to_i * 1_000)
      RUBY
      PAUSE = 0.02 # seconds between two requests
      private_constant :CASES, :PAUSE

      # @return [Array<String>]
      def find
        milliseconds = @quick ? 300 : 2_000
        [["gives-up", 1, []], ["gives-up", 1, %w[--protect off]], ["keeps", 1, []],
         ["keeps", 2, []]].map do |kind, processes, flags|
          longest = longest_hello(kind, milliseconds, processes, flags)
          "a call of #{milliseconds} ms that #{kind.tr("-", " ")} Ruby's lock, " \
            "#{processes} #{processes == 1 ? "process" : "processes"}" \
            "#{", without protections" if flags.any?}: another client waits for #{(longest * 1_000).round} ms at most"
        end
      end

      private

      def longest_hello(kind, milliseconds, processes, flags)
        serve(CASES, processes:, flags:) do |server|
          20.times { get(server, "/hello") }
          calling = Thread.new { get(server, "/native/#{kind}/#{milliseconds}") }
          times = []
          while calling.alive?
            times << elapsed { get(server, "/hello") }
            sleep(PAUSE)
          end
          times.max
        end
      end
    end
  end
end
