# frozen_string_literal: true

# test: each mode

require "test_helper"
require_relative "rack_helpers"

# Bodies that other threads write for.
class StreamOfThreadsTest < Minitest::Test
  include RackHelpers

  def streaming(&body) = ->(_env) { [200, {}, body] }

  LIMIT = 15

  # As in the server, the loop has a root task.
  def scheduled = in_thread { Heddle.run { yield Fiber.scheduler } }

  # As with Puma and Falcon. The SDK of the Model Context Protocol, for example, keeps streams and writes to them later.
  def test_a_stream_that_a_body_leaves_open_ends_when_another_thread_closes_it
    kept = Thread::Queue.new
    app = streaming { |stream| kept << stream }
    converse_with(app, lint: false) do |conversation|
      conversation.say(GET)
      conversation.await { !kept.empty? }
      stream = kept.pop
      await_output("\r\n\r\n")
      writer = Thread.new do
        stream.write("x")
        stream << "y"
        stream.flush
        stream.close
      end
      await_output("0\r\n\r\n")
      writer.join

      assert_equal ["xy", ""], unchunk(parts(conversation.output)[2])
      assert_predicate stream, :closed?
      assert_raises(IOError) { stream.write("late") }
      conversation.say(GET)
      conversation.await { !kept.empty? }
      kept.pop.close
      conversation.await { conversation.output.scan("0\r\n\r\n").size == 2 }
    end

    assert_empty log.failures
  end

  def test_a_thread_writes_while_its_body_waits_for_it
    app = streaming do |stream|
      Thread.new { stream.write("x") }.join
      stream.close
    end

    assert_equal ["x", ""], unchunk(parts(serve(app))[2])
    assert_empty log.failures
  end

  # Sinatra's chat keeps such blocks, and requests of others call them.
  def test_a_thread_calls_the_block_of_each
    body = Object.new
    def body.each = Thread.new { 2.times { |number| yield number.to_s } }.join

    assert_equal ["01", ""], unchunk(parts(serve(->(_env) { [200, {}, body] }))[2])
    assert_empty log.failures
  end

  def test_a_thread_that_writes_to_a_client_that_left_gets_an_error
    kept = Thread::Queue.new
    converse_with(streaming { |stream| kept << stream }, lint: false) do |conversation|
      conversation.say(GET)
      conversation.await { !kept.empty? }
      stream = kept.pop
      conversation.vanish
      raised = Thread.new { assert_raises(Heddle::ClientGoneError) { loop { stream.write("a") && Thread.pass } } }
      conversation.await { !raised.alive? }
      raised.join
      assert_raises(Heddle::ClientGoneError) { stream.close }
    end

    assert_empty log.failures
  end
end
