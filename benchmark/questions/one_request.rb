# frozen_string_literal: true

module Bench
  module Questions
    # Does one request become faster?
    class OneRequest < Experiment
      CASES = <<~RUBY
        when "/one-after-the-other" then 3.times { sleep 0.5 }
        when "/at-once" then Heddle.map(1..3) { sleep 0.5 }
      RUBY
      private_constant :CASES

      # @return [Array<String>]
      def find
        serve(CASES) do |server|
          { "one after the other" => "/one-after-the-other", "by Heddle.map" => "/at-once" }.map do |how, path|
            get(server, "/hello")
            "three waits of 0.5 s, #{how}: #{seconds(elapsed { get(server, path) })}"
          end
        end
      end
    end
  end
end
