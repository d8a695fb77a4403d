# frozen_string_literal: true

require "rspec/core"
require "heddle/concurrency/test_loop"

module Heddle
  # Runs each example that is marked with `:heddle`, with its hooks, in a separate event loop. An example fails if it
  # takes longer than its time limit, if a task that it started fails, or if a task or fiber that it started still
  # exists at its end. Background tasks are cancelled instead. The time limit interrupts an example where it waits, not
  # while it computes.
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
