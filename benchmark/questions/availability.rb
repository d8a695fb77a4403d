# frozen_string_literal: true

module Bench
  module Questions
    # Is every request answered, also while workers are replaced?
    class Availability < Experiment
      CASES = <<~RUBY
        when "/wait" then sleep(0.05)
        when "/compute" then 2_000.times.sum { |number| number.to_s.size }
      RUBY
      PATHS = %w[/hello /wait /compute].freeze
      CLIENTS = 50
      private_constant :CASES, :PATHS, :CLIENTS

      # @return [Array<String>]
      def find
        seconds = @quick ? 1.5 : 10
        serve(CASES, processes: 2) do |server|
          till = now + seconds
          clients = Array.new(CLIENTS) { |number| Thread.new { ask(server, number, till) } }
          sleep(seconds / 3)
          Process.kill(:HUP, server.pid)
          answers = clients.flat_map(&:value)
          good = answers.compact.size
          ["#{CLIENTS} clients, two workers that are replaced after a third of the time: #{good} of #{answers.size} " \
           "requests were answered, #{format("%.2f", good * 100.0 / answers.size)} %"]
        end
      end

      private

      # @return [Array<String, nil>]
      def ask(server, number, till)
        answers = []
        while now < till
          answers << get(server, PATHS[number % PATHS.size])
          number += 1
        end
        answers
      end
    end
  end
end
