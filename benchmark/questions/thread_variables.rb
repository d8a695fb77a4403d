# frozen_string_literal: true

module Bench
  module Questions
    # Do requests that share a thread see each other's variables of the thread?
    class ThreadVariables < Experiment
      REQUESTS = 50
      # Each keeps its number in four places, waits until all others have done so, and reads it again.
      CASES = <<~'RUBY'
        when %r{\A/keep/(\d+)\z}
          number = $1
          Thread.current[:number] = number
          Fiber[:number] = number
          Thread.current.thread_variable_set(:number, number)
          Thread.current.thread_variable_set(:listed, number)
          $kept = $kept.to_i + 1
          sleep 0.01 until $kept == 50
          [Thread.current[:number], Fiber[:number], Thread.current.thread_variable_get(:number),
           Thread.current.thread_variable_get(:listed)].map { |kept| kept == number }.join(" ")
      RUBY
      PLACES = ["Thread.current[]", "Fiber[]", "a thread variable", "a thread variable that --isolate lists"].freeze
      private_constant :REQUESTS, :CASES, :PLACES

      # @return [Array<String>]
      def find
        serve(CASES, flags: %w[--isolate listed --max-requests 100]) do |server|
          kept = get_all(server, Array.new(REQUESTS) { |number| "/keep/#{number}" }).map { |answer| answer.to_s.split }
          PLACES.each_with_index.map do |place, index|
            "#{place}: #{kept.count { |found| found[index] == "true" }} of #{REQUESTS} requests read their own value"
          end
        end
      end
    end
  end
end
