# frozen_string_literal: true

require "rspec/core"
require "heddle/concurrency/test_loop"

module Heddle
  # Runs examples that are marked with `:heddle` in a loop of their own, their hooks included. An example fails when it
  # takes longer than its time limit (at a wait; one that computes is not interrupted), when a task that it started
  # fails, and when a task or fiber that it started is still there at its end.
  #
  #     require "heddle/rspec"
  #
  #     RSpec.describe "two things at once", :heddle do
  #       it { expect(Heddle.map([1, 2]) { |n| n }.sum).to eq(3) }
  #       it("is quick", heddle: { time_limit: 1 }) { … }
  #     end
  module RSpec
    # @api private
    def self.run(example)
      options = example.metadata[:heddle]
      limit = options[:time_limit] if options.is_a?(Hash)
      error = Concurrency::TestLoop.new(example.full_description, limit || Concurrency::TestLoop::TIME_LIMIT)
                                   .run { example.run }
      raise error if error
    end
  end
end

RSpec.configure do |config|
  config.around(:each, :heddle) { |example| Heddle::RSpec.run(example) }
end
