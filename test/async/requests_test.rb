# frozen_string_literal: true

require "test_helper"
require "async"
require "async/http/internet"
require "async/semaphore"
require_relative "../server/server_helpers"

# Applications that use the async gems, served by Heddle.
class AsyncRequestsTest < Minitest::Test
  include ServerHelpers

  def setup
    skip "only in the loop's fibers" unless mode_under_test.empty? || mode_under_test == { mode: :fiber }
  end

  def test_tasks_of_a_request_run_at_the_same_time
    gate = nil
    app = lambda do |_|
      gate = Thread::Queue.new
      takers = Array.new(3) { |number| Async { gate.pop + number } }
      3.times { gate << 10 }
      text(takers.map(&:wait).inspect)
    end
    serving(app) { assert_equal "[10, 11, 12]", get("/").body }
  end

  def test_requests_through_async_http_share_its_connections
    internet = Async::HTTP::Internet.new
    app = lambda do |env|
      next text("upstream #{env["PATH_INFO"]}") if env["PATH_INFO"].start_with?("/up")

      semaphore = Async::Semaphore.new(2)
      found = Array.new(4) { |number| semaphore.async { internet.get(upstream("/up/#{number}"), &:read) } }
      text(found.map(&:wait).join(","))
    end
    serving(app) do
      2.times { assert_equal "upstream /up/0,upstream /up/1,upstream /up/2,upstream /up/3", get("/").body }
    end
    assert_empty errors.string
  end

  def test_tasks_are_cancelled_with_their_request
    cancelled = Thread::Queue.new
    app = lambda do |_|
      Async do
        sleep
      rescue Async::Cancel => e
        cancelled << e.class
        raise
      end
      sleep
    end
    serving(app, request_timeout: 0.05) do
      assert_equal "503", get("/").code
      assert_equal Async::Cancel, cancelled.pop(timeout: PATIENCE)
    end
  end

  def test_a_request_waits_for_its_tasks_after_the_response
    gate = Thread::Queue.new
    ended = Thread::Queue.new
    app = lambda do |_|
      Async { ended << gate.pop }
      text("sent")
    end
    serving(app) do
      assert_equal "sent", get("/").body
      gate << :done
      assert_equal :done, ended.pop(timeout: PATIENCE)
    end
  end

  def test_a_request_never_sees_another_requests_task
    app = lambda do |env|
      found = Async::Task.current?
      Async::Task.current.annotate(env["PATH_INFO"])
      text(found.inspect)
    end
    serving(app) { assert_equal %w[nil nil], [get("/1").body, get("/2").body] }
  end

  def test_the_task_tree_shows_async_tasks
    tree = Thread::Queue.new
    shown = Thread::Queue.new
    app = lambda do |_|
      Async(annotation: "outer one") do |task|
        task.async(annotation: "inner one") { shown.pop }
        tree << Heddle.task_tree.to_s
      end.wait
      text("fine")
    end
    serving(app) do
      client = Thread.new { get("/").body }
      text = tree.pop(timeout: PATIENCE)
      shown << true

      assert_match(/^( *)outer one \(running\)\n(\1   .*\n)*?\1  inner one \(waiting\)/, text)
      assert_equal 1, text.scan("inner one").size
      assert_equal "fine", client.value
    end
  end

  private

  def text(body) = [200, { "content-type" => "text/plain" }, [body]]

  def upstream(path) = "http://127.0.0.1:#{port}#{path}"
end
