# frozen_string_literal: true

require "test_helper"
require_relative "server_helpers"

# When requests that compute are started.
class GateTest < Minitest::Test
  include ServerHelpers

  def setup
    @release = false
    @begun = @most = 0
  end

  # /hog computes until it is released, in the fiber of the request or in a task; others compute for a while.
  def app
    lambda do |env|
      @begun += 1
      @most = @begun if @begun > @most
      case env["PATH_INFO"]
      when "/hog" then compute_until_released
      when "/task" then Heddle.async { compute_until_released }.value
      else 20_000.times(&:to_s)
      end
      [200, {}, [env["PATH_INFO"]]]
    ensure
      @begun -= 1
    end
  end

  def compute_until_released
    nil until @release
  end

  def asking(*paths)
    paths.map { |path| connect.tap { |socket| socket.write("GET #{path} HTTP/1.1\r\nHost: a\r\n\r\n") } }
  end

  def bodies(sockets) = sockets.map { |socket| read_answer(socket)[/\r\n\r\n(.*)\z/m, 1] }

  def test_requests_that_compute_run_one_after_another
    serving(app, lint: false, protect: %i[preempt], access_log: false) do
      sockets = Array.new(3) { asking(*Array.new(10, "/page")) }.flatten

      assert_equal ["/page"] * 30, bodies(sockets)
    end
    assert_operator @most, :<=, 2
  end

  # However many they are.
  %w[/hog /task].each do |path|
    define_method(:"test_requests_beyond_their_quantum_delay_no_other_where_#{path.delete("/")}s_compute") do
      # Four quanta of processor time may last longer than ten seconds on a busy machine.
      serving(app, lint: false, protect: %i[preempt], access_log: false, queue_timeout: 600) do
        hogs = asking(*[path] * 4)

        assert_equal ["/page"] * 10, bodies(asking(*Array.new(10, "/page")))
        assert_equal 4, server.statistics[:running]
        @release = true

        assert_equal [path] * 4, bodies(hogs)
      ensure
        @release = true
      end
    end
  end

  # Requests within their quantum come first, but a share of the turns is left.
  def test_a_request_beyond_its_quantum_continues_beside_others_that_follow_closely
    serving(app, lint: false, protect: %i[preempt], access_log: false) do
      hog = asking("/hog").first
      asked = 0
      until hog.wait_readable(0)
        assert_equal ["/page"], bodies(asking("/page"))
        @release = true if (asked += 1) == 3
      end

      assert_equal ["/hog"], bodies([hog])
    ensure
      @release = true
    end
  end
end
