# frozen_string_literal: true

# test: once

require "test_helper"
require "heddle/server"

# One worker at a time makes its major garbage collection, while the others accept what is new.
class GCQueueTest < Minitest::Test
  class Worker
    attr_reader :messages
    attr_writer :serving

    def initialize
      @messages = []
      @serving = true
    end

    def channel = self
    def send_message(text) = messages << text
    def serving? = @serving
  end

  def setup
    @turns = Heddle::Server::Cluster::GCQueue.new
    @first, @second = Array.new(2) { Worker.new }
    [@first, @second].each { |worker| @turns.request(worker) }
    @turns.start_next
  end

  def test_the_second_worker_waits_until_the_first_has_collected
    2.times { @turns.start_next }

    assert_equal [%w[collect_garbage], []], [@first.messages, @second.messages]
    @turns.finish(@first)
    @turns.start_next

    assert_equal [%w[collect_garbage], %w[collect_garbage]], [@first.messages, @second.messages]
  end

  def test_a_worker_that_ends_lets_the_next_one_collect
    @first.serving = false
    @turns.start_next

    assert_equal %w[collect_garbage], @second.messages
  end

  def test_a_worker_that_ended_while_it_waited_is_skipped
    @second.serving = false
    @turns.finish(@first)
    @turns.start_next

    assert_empty @second.messages
  end
end
