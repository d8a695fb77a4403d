# frozen_string_literal: true

require "test_helper"
require "heddle"
require "heddle/rack"

class ExchangeProxyTest < Minitest::Test
  # Fails as code of an application may: with what is not a StandardError.
  class Failing
    class Failure < Exception; end

    def started? = raise(Failure, "asked")
    def close = nil
  end

  # Its response can always be withdrawn.
  class Withdrawable
    # @return [Thread::Queue] gets true when the head is sent
    attr_reader :sent

    def initialize = @sent = Thread::Queue.new
    def response = self
    def withdraw = true
    def flush = sent << true
  end

  # @yieldparam proxy [Heddle::Rack::ExchangeProxy] in a thread
  # @return what the loop's fiber returns
  def follow(exchange = Failing.new, &)
    Heddle.run do
      proxy = Heddle::Rack::ExchangeProxy.new(exchange, &)
      thread = Thread.new { proxy.run }
      proxy.follow.tap { thread.join }
    end
  end

  def test_an_exception_that_a_thread_is_answered_with_is_not_raised_in_the_loop_too
    raised = nil
    follow { |proxy| raised = assert_raises(Failing::Failure) { proxy.started? } }

    assert_equal "asked", raised.message
  end

  def test_an_exception_of_what_no_thread_waits_for_is_raised_by_its_next_call
    raised = nil
    follow do |proxy|
      proxy.enqueue { raise Failing::Failure, "told" }
      raised = assert_raises(Failing::Failure) { proxy.started? }
    end

    assert_equal "told", raised.message
  end

  def test_error_of_an_enqueued_call_is_raised_by_a_read_after_it
    raised = nil
    follow do |proxy|
      proxy.enqueue { raise Failing::Failure, "enqueued" }
      raised = assert_raises(Failing::Failure) { proxy.read }
    end

    assert_equal "enqueued", raised.message
  end

  def test_read_that_is_queued_when_the_exchange_ends_raises
    raised = nil
    Heddle.run do
      proxy = Heddle::Rack::ExchangeProxy.new(Failing.new) do |one|
        one.enqueue { raise Heddle::Cancelled }
        raised = assert_raises(Heddle::Rack::ExchangeProxy::EndedError) { one.read }
      end
      thread = Thread.new { proxy.run }
      Thread.pass until thread.status == "sleep"

      assert_raises(Heddle::Cancelled) { proxy.follow }
      thread.join
    end

    assert_equal "this request has ended", raised.message
  end

  def test_a_head_that_is_held_is_sent_although_the_thread_writes_nothing
    exchange = Withdrawable.new
    follow(exchange) do |proxy|
      proxy.response.hold

      assert exchange.sent.pop(timeout: 10)
    end
  end

  # Another response follows in its place. Even a head that is due meanwhile would come before it.
  def test_a_withdrawn_head_is_not_sent
    exchange = Withdrawable.new
    follow(exchange) do |proxy|
      proxy.response.hold
      proxy.response.withdraw

      assert_nil exchange.sent.pop(timeout: 0.2)
    end
  end

  # @return [Array] what each proxy's block returns, in the same thread. The first is cancelled when its block has ended
  def run_cancelled_late(count)
    results = []
    thread = nil
    Heddle.run do
      proxies = Array.new(count) do |number|
        Heddle::Rack::ExchangeProxy.new(Failing.new) do
          Thread.pass # a pending exception is raised here
          results << number
        end
      end
      trace = TracePoint.new(:c_return) do |point|
        next unless point.method_id == :handle_interrupt && Thread.current == thread && results.size == 1

        Thread.new { proxies.first.cancel(Heddle::Cancelled.new) }.join
      end
      thread = Thread.new do
        Thread.stop
        Thread.handle_interrupt(Heddle::Cancelled => :never) { trace.enable { proxies.each(&:run) } }
      end
      Thread.pass until thread.stop?
      thread.run
      thread.join
    end
    results
  end

  def test_cancellation_that_comes_too_late_for_its_request_does_not_end_the_next_one
    assert_equal [0, 1], run_cancelled_late(2)
  end

  def test_cancelling_ends_the_fiber_of_the_loop
    Heddle.run do
      proxy = Heddle::Rack::ExchangeProxy.new(Failing.new) { |one| one.enqueue { raise Heddle::Cancelled } }
      thread = Thread.new { proxy.run }

      assert_raises(Heddle::Cancelled) { proxy.follow }
      thread.join
    end
  end
end
